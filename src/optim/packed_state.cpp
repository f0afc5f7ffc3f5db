#include "optim/packed_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "optim/block_code.h"
#include "optim/kernel.h"
#include "optim/random_bits.h"

namespace megalith {
namespace {

constexpr uint64_t kMostSlots = 8;  // maximum number of slots of a parameter; separates their random streams
static_assert(kElementChunk % kScaleBlock == 0);

MEGALITH_KERNEL void to_bf16(int64_t n, const float* __restrict x, const uint16_t* __restrict random,
                             uint16_t* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<uint16_t>((std::bit_cast<uint32_t>(x[i]) + random[i]) >> 16);
}

// Rounds to nearest, ties to even.
MEGALITH_KERNEL void to_bf16_nearest(int64_t n, const float* __restrict x, uint16_t* __restrict out) {
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    out[i] = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
}

MEGALITH_KERNEL void from_bf16(int64_t n, const uint16_t* __restrict x, float* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16);
}

// Calls work(first, count, scale) for the blocks of [begin, begin + count). `first` counts from `begin`. `scale` is the
// index of the block's scale.
template <class Work>
void each_block(int64_t begin, int64_t count, const Work& work) {
  for (int64_t at = begin, end = begin + count; at < end;) {
    const int64_t next = std::min(end, (at / kScaleBlock + 1) * kScaleBlock);
    work(at - begin, next - at, at / kScaleBlock - begin / kScaleBlock);
    at = next;
  }
}

// A thread's memory for unpacked elements, small enough to stay in its cache.
struct Scratch {
  std::vector<float> values;
  std::vector<uint16_t> random;
};

Scratch& scratch(size_t slots) {
  thread_local Scratch mine;
  mine.values.resize(slots * kElementChunk);
  mine.random.resize(kElementChunk);
  return mine;
}

// Calls work(tile) for parts of a slice, on LibTorch's threads. Parts are cut where the index in the parameter is a multiple
// of kElementChunk, so at block ends.
template <class Work>
void each_tile(Packing packing, const PackedSlice& slice, const Work& work) {
  const int64_t begin = slice.begin, end = begin + std::ssize(slice.value), bytes = packed_bytes(packing);
  const int64_t first = begin / kElementChunk, last = (end + kElementChunk - 1) / kElementChunk;
  for_chunks(last - first, 1, [&](int64_t number, int64_t) {
    const int64_t from = std::max(begin, (first + number) * kElementChunk);
    const int64_t to = std::min(end, (first + number + 1) * kElementChunk);
    const auto at = static_cast<size_t>(from - begin), count = static_cast<size_t>(to - from);
    PackedSlice tile{slice.parameter, from, slice.value.subspan(at, count), {}, slice.slots};
    if (!slice.gradient.empty()) tile.gradient = slice.gradient.subspan(at, count);
    for (PackedSlot& slot : tile.slots) {
      slot.numbers += bytes * (from - begin);
      if (slot.scales) slot.scales += from / kScaleBlock - begin / kScaleBlock;
    }
    work(tile);
  });
}

void apply_plain(const Optimizer& optimizer, const PackedSlice& slice, const Update& update) {
  ParameterSlice plain{slice.parameter, slice.begin, slice.value, slice.gradient, {}};
  for (const PackedSlot& slot : slice.slots)
    plain.slots.emplace_back(reinterpret_cast<float*>(slot.numbers), slice.value.size());
  optimizer.apply(plain, update, {});
}

// Unpacks the tile's state, updates the tile, and packs the state again.
void apply_to_tile(const Optimizer& optimizer, Packing packing, std::span<const SlotSpec> specs, const PackedSlice& tile,
                   const Update& update) {
  if (packing == Packing::fp32) return apply_plain(optimizer, tile, update);
  Scratch& room = scratch(specs.size());
  const size_t count = tile.value.size();
  ParameterSlice wide{tile.parameter, tile.begin, tile.value, tile.gradient, {}};
  for (size_t k = 0; k < specs.size(); k++) {
    wide.slots.push_back(std::span(room.values).subspan(k * kElementChunk, count));
    unpack(packing, specs[k].negative, tile.slots[k], tile.begin, wide.slots.back());
  }
  optimizer.apply(wide, update, {});
  for (size_t k = 0; k < specs.size(); k++) {
    const std::span<uint16_t> random = std::span(room.random).first(count);
    const uint64_t item = static_cast<uint64_t>(tile.parameter->number) * kMostSlots + k;
    const Philox bits(update.seed, RandomUse::stochastic_rounding, item, static_cast<uint64_t>(update.step));
    random_bits(bits, tile.begin, random);
    pack(packing, specs[k].negative, wide.slots[k], tile.begin, random, tile.slots[k]);
  }
}

std::vector<SlotSpec> slots_of(const Optimizer& optimizer, const PackedSlice& slice) {
  std::vector<SlotSpec> specs = optimizer.slots(*slice.parameter);
  MEGALITH_ASSERT(specs.size() == slice.slots.size() && specs.size() <= kMostSlots, "{}", slice.parameter->name);
  return specs;
}

}  // namespace

int64_t packed_bytes(Packing packing) {
  switch (packing) {
    case Packing::fp32: return 4;
    case Packing::bf16: return 2;
    case Packing::int8: return 1;
  }
  MEGALITH_ASSERT(false, "packing {}", static_cast<int>(packing));
}

int64_t scale_count(Packing packing, int64_t begin, int64_t count) {
  if (packing != Packing::int8 || count == 0) return 0;
  return (begin + count - 1) / kScaleBlock - begin / kScaleBlock + 1;
}

void unpack(Packing packing, bool negative, const PackedSlot& from, int64_t begin, std::span<float> values) {
  const int64_t n = std::ssize(values);
  switch (packing) {
    case Packing::fp32: std::memcpy(values.data(), from.numbers, values.size_bytes()); return;
    case Packing::bf16: from_bf16(n, reinterpret_cast<const uint16_t*>(from.numbers), values.data()); return;
    case Packing::int8: break;
  }
  const auto* codes = reinterpret_cast<const uint8_t*>(from.numbers);
  each_block(begin, n, [&](int64_t first, int64_t count, int64_t scale) {
    decode_block({codes + first, static_cast<size_t>(count)}, negative, from.scales[scale], values.data() + first);
  });
}

void pack(Packing packing, bool negative, std::span<const float> values, int64_t begin, std::span<const uint16_t> random,
          const PackedSlot& to) {
  const int64_t n = std::ssize(values);
  switch (packing) {
    case Packing::fp32: std::memcpy(to.numbers, values.data(), values.size_bytes()); return;
    case Packing::bf16:
      if (random.empty()) to_bf16_nearest(n, values.data(), reinterpret_cast<uint16_t*>(to.numbers));
      else to_bf16(n, values.data(), random.data(), reinterpret_cast<uint16_t*>(to.numbers));
      return;
    case Packing::int8: break;
  }
  auto* codes = reinterpret_cast<uint8_t*>(to.numbers);
  each_block(begin, n, [&](int64_t first, int64_t count, int64_t scale) {
    const auto at = static_cast<size_t>(first), length = static_cast<size_t>(count);
    to.scales[scale] = encode_block(values.subspan(at, length), negative,
                                    random.empty() ? random : random.subspan(at, length), codes + first);
  });
}

void apply_packed(const Optimizer& optimizer, Packing packing, const PackedSlice& slice, std::span<const Update> updates) {
  static const std::vector<float> zeros(kElementChunk, 0.0f);
  const std::vector<SlotSpec> specs = slots_of(optimizer, slice);
  if (packing == Packing::fp32 && updates.size() == 1 && !slice.gradient.empty())  // no need to cut it into tiles
    return apply_plain(optimizer, slice, updates.front());
  each_tile(packing, slice, [&](PackedSlice tile) {
    const std::span<const float> none = std::span(zeros).first(tile.value.size());
    if (tile.gradient.empty()) tile.gradient = none;
    for (const Update& update : updates) {
      apply_to_tile(optimizer, packing, specs, tile, update);
      tile.gradient = none;
    }
  });
}

}  // namespace megalith
