#include "engine/block_store.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "memory/allocator.h"
#include "memory/disk_speed.h"

namespace megalith {
namespace {

constexpr int64_t kFloat = sizeof(float);
static_assert(kStateChunk * kFloat == kSpillChunk, "float32 arrays fill the units of their files");
constexpr int64_t kSlots = 4;                     // chunks of an array in memory while it streams
constexpr int64_t kAhead = 2;                     // of them on their way in; the others are worked on or on their way out

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

std::span<std::byte> bytes_of(float* data, int64_t elements) {
  return std::as_writable_bytes(std::span(data, static_cast<size_t>(elements)));
}

// Elements of a transfer that holds `elements`.
int64_t padded(int64_t elements) { return round_up(elements, kDiskAlign / kFloat); }

}  // namespace

at::Tensor disk_buffer(int64_t elements) {
  at::Tensor whole = at::empty({padded(elements) + kDiskAlign / kFloat}, at::kFloat);
  const auto address = reinterpret_cast<uintptr_t>(whole.mutable_data_ptr<float>());
  const int64_t skip = round_up(static_cast<int64_t>(address), kDiskAlign) - static_cast<int64_t>(address);
  return whole.narrow(0, skip / kFloat, elements);
}

int64_t StoredArray::chunks() const { return (elements + kStateChunk - 1) / kStateChunk; }

int64_t StoredArray::chunk_bytes(int64_t chunk) const {
  return round_up(element_bytes * std::min(kStateChunk, elements - chunk * kStateChunk) + chunk_extra, kDiskAlign);
}

int64_t StoredArray::chunk_stride() const { return round_up(element_bytes * kStateChunk + chunk_extra, kDiskAlign); }

StoredArray stored_slot(const StateLayout& layout) {
  return {layout.elements(), packed_bytes(layout.packing()), layout.scale_bytes()};
}

BlockStore::BlockStore(const std::filesystem::path& folder, const std::vector<StoredBlock>& blocks) : folder_(folder) {
  // Bytes of a unit: a chunk of any array fits, and where one has several they follow each other.
  int64_t state_unit = kDiskAlign, optimizer_unit = kDiskAlign;
  const auto fit = [](int64_t& unit, const StoredArray& array) {
    if (array.elements > 0) unit = std::max(unit, array.chunks() > 1 ? array.chunk_stride() : array.chunk_bytes(0));
  };
  for (const StoredBlock& block : blocks) {
    fit(state_unit, block.parameters);
    fit(state_unit, block.gradient);
    for (const StoredArray& slot : block.slots) fit(optimizer_unit, slot);
  }
  int64_t parameters = 0, gradients = 0, optimizer = 0, inputs = 0;  // bytes of each file
  const auto place = [](int64_t& end, const StoredArray& array, int64_t unit) {
    Extent extent{nullptr, end, array};
    end += array.chunks() * unit;
    return extent;
  };
  for (const StoredBlock& block : blocks) {
    Places& places = places_.emplace_back();
    places.parameters = place(parameters, block.parameters, state_unit);
    places.gradient = place(gradients, block.gradient, state_unit);
    for (const StoredArray& slot : block.slots) places.slots.push_back(place(optimizer, slot, optimizer_unit));
    for (const StoredArray& input : block.inputs) places.inputs.push_back(place(inputs, input, kSpillChunk));
  }
  bytes_ = parameters + gradients + optimizer + inputs;
  folder_.require(bytes_);
  if (parameters > 0) parameters_ = folder_.make("parameters", parameters, state_unit);
  if (gradients > 0) gradients_ = folder_.make("gradients", gradients, state_unit);
  if (optimizer > 0) optimizer_ = folder_.make("optimizer", optimizer, optimizer_unit);
  if (inputs > 0) inputs_ = folder_.make("inputs", inputs);
  for (Places& places : places_) {
    places.parameters.file = parameters_.get();
    places.gradient.file = gradients_.get();
    for (Extent& slot : places.slots) slot.file = optimizer_.get();
    for (Extent& input : places.inputs) input.file = inputs_.get();
  }
  for (auto& queue : queues_) queue = make_disk_queue(folder_.way(), kSpillDepth);
}

int64_t BlockStore::bytes_read() const {
  int64_t sum = 0;
  for (const auto& queue : queues_) sum += queue->bytes_read();
  return sum;
}

int64_t BlockStore::bytes_written() const {
  int64_t sum = 0;
  for (const auto& queue : queues_) sum += queue->bytes_written();
  return sum;
}

BlockStore::Extent BlockStore::input(BlockId block, MicroId micro, int64_t bytes) const {
  Extent extent = places_[static_cast<size_t>(block)].inputs.at(static_cast<size_t>(micro));
  MEGALITH_ASSERT((bytes + kFloat - 1) / kFloat <= extent.array.elements, "{} bytes to park", bytes);
  extent.array.elements = (bytes + kFloat - 1) / kFloat;
  return extent;
}

void BlockStore::read(Lane lane, std::span<const Whole> all) {
  for (const Whole& one : all)
    queue(lane).read(*one.extent.file, one.extent.offset, bytes_of(one.buffer, padded(one.extent.array.elements)));
  queue(lane).wait_all();
}

void BlockStore::write(Lane lane, std::span<const Whole> all) {
  for (const Whole& one : all)
    queue(lane).write(*one.extent.file, one.extent.offset, bytes_of(one.buffer, padded(one.extent.array.elements)));
  queue(lane).wait_all();
}

int64_t BlockStore::staging_bytes(const std::vector<std::vector<StoredArray>>& staged) {
  int64_t bytes = 0;
  for (const std::vector<StoredArray>& kind : staged) {
    int64_t chunks = 0, stride = 0;
    for (const StoredArray& array : kind) {
      chunks += array.chunks();
      stride = std::max(stride, array.chunk_stride());
    }
    bytes += std::min(kSlots, chunks) * stride;
  }
  return bytes;
}

void BlockStore::stream(Lane lane, const std::vector<Array>& arrays, const ChunkWork& work) {
  stream(lane, std::vector<std::vector<Array>>{arrays},
         [&](size_t, int64_t chunk, std::span<std::byte* const> pointers) { work(chunk, pointers); });
}

void BlockStore::stream(Lane lane, const std::vector<std::vector<Array>>& parts, const PartWork& work) {
  struct Turn {
    size_t part;
    int64_t chunk;
  };
  std::vector<Turn> turns;
  size_t kinds = 0;
  for (size_t p = 0; p < parts.size(); p++) {
    MEGALITH_ASSERT(!parts[p].empty());
    kinds = std::max(kinds, parts[p].size());
    for (int64_t chunk = 0; chunk < parts[p].front().extent.array.chunks(); chunk++) turns.push_back({p, chunk});
  }
  MemoryScope scope(AllocationKind::staging);
  std::vector<at::Tensor> staging(kinds);
  std::vector<int64_t> strides(kinds, 0);  // bytes: of the largest chunk of a kind that is staged
  for (const std::vector<Array>& arrays : parts)
    for (size_t a = 0; a < arrays.size(); a++) {
      const StoredArray& array = arrays[a].extent.array;
      MEGALITH_ASSERT(array.elements == arrays.front().extent.array.elements, "arrays stream in step");
      if (!arrays[a].whole) strides[a] = std::max(strides[a], array.chunk_stride());
    }
  const int64_t slots = std::min(std::ssize(turns), kSlots);
  for (size_t a = 0; a < kinds; a++)
    if (strides[a] > 0) staging[a] = disk_buffer(slots * strides[a] / kFloat);
  std::vector<std::vector<DiskQueue::Ticket>> coming(kSlots), going(kSlots);  // by turn modulo their number
  const auto bytes = [&](int64_t turn, size_t a) {
    const auto [part, chunk] = turns[static_cast<size_t>(turn)];
    const Array& it = parts[part][a];
    auto* const first = reinterpret_cast<std::byte*>(it.whole ? it.whole : staging[a].mutable_data_ptr<float>());
    const int64_t at = it.whole ? chunk * it.extent.array.chunk_stride() : turn % kSlots * strides[a];
    return std::span(first + at, static_cast<size_t>(it.extent.array.chunk_bytes(chunk)));
  };
  const auto on_disk = [&](int64_t turn, size_t a) {
    const auto [part, chunk] = turns[static_cast<size_t>(turn)];
    return parts[part][a].extent.offset + chunk * parts[part][a].extent.file->unit();
  };
  const auto arrays_of = [&](int64_t turn) -> const std::vector<Array>& {
    return parts[turns[static_cast<size_t>(turn)].part];
  };
  DiskQueue& disk = queue(lane);
  const auto settle = [&](std::vector<DiskQueue::Ticket>& tickets) {
    for (DiskQueue::Ticket ticket : tickets) disk.wait(ticket);
    tickets.clear();
  };
  const auto come = [&](int64_t turn) {
    settle(going[static_cast<size_t>(turn % kSlots)]);  // of the chunk that was in this place
    const std::vector<Array>& arrays = arrays_of(turn);
    for (size_t a = 0; a < arrays.size(); a++)
      if (arrays[a].reads)
        coming[static_cast<size_t>(turn % kSlots)].push_back(
            disk.read(*arrays[a].extent.file, on_disk(turn, a), bytes(turn, a)));
  };
  try {
    std::vector<std::byte*> pointers(kinds);
    for (int64_t turn = 0; turn < std::min(kAhead, std::ssize(turns)); turn++) come(turn);
    for (int64_t turn = 0; turn < std::ssize(turns); turn++) {
      if (turn + kAhead < std::ssize(turns)) come(turn + kAhead);
      settle(coming[static_cast<size_t>(turn % kSlots)]);
      const std::vector<Array>& arrays = arrays_of(turn);
      for (size_t a = 0; a < arrays.size(); a++) pointers[a] = bytes(turn, a).data();
      const auto [part, chunk] = turns[static_cast<size_t>(turn)];
      work(part, chunk, std::span(pointers).first(arrays.size()));
      for (size_t a = 0; a < arrays.size(); a++)
        if (arrays[a].writes)
          going[static_cast<size_t>(turn % kSlots)].push_back(
              disk.write(*arrays[a].extent.file, on_disk(turn, a), bytes(turn, a)));
    }
    disk.wait_all();
  } catch (...) {
    // The disk still uses the staging buffers.
    try {
      disk.wait_all();
    } catch (const Fault&) {  // the first one goes on
    }
    throw;
  }
}

}  // namespace megalith
