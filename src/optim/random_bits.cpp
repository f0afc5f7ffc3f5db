#include "optim/random_bits.h"

#include <algorithm>

#include "base/philox_blocks.h"
#include "optim/kernel.h"

namespace megalith {
namespace {

constexpr int64_t kBlocks = 64;           // of Philox, at once
constexpr int64_t kGroup = 8 * kBlocks;   // elements

MEGALITH_KERNEL void group_bits(uint64_t counter, uint64_t stream, uint64_t key, uint16_t* __restrict out) {
  uint32_t words[4][kBlocks];
  philox_blocks(counter, stream, key, words);
  for (int64_t w = 0; w < 4; w++) {
    const uint32_t* __restrict word = words[w];
    for (int64_t b = 0; b < kBlocks; b++) out[2 * w * kBlocks + b] = static_cast<uint16_t>(word[b]);
    for (int64_t b = 0; b < kBlocks; b++) out[(2 * w + 1) * kBlocks + b] = static_cast<uint16_t>(word[b] >> 16);
  }
}

}  // namespace

void random_bits(const Philox& stream, int64_t begin, std::span<uint16_t> out) {
  const int64_t end = begin + std::ssize(out);
  uint16_t part[kGroup];
  for (int64_t group = begin / kGroup; group * kGroup < end; group++) {
    const int64_t first = group * kGroup, from = std::max(begin, first), to = std::min(end, first + kGroup);
    const bool whole = to - from == kGroup;
    uint16_t* into = whole ? out.data() + (first - begin) : part;
    group_bits(static_cast<uint64_t>(group * kBlocks), stream.stream(), stream.key(), into);
    if (!whole) std::copy(part + (from - first), part + (to - first), out.data() + (from - begin));
  }
}

}  // namespace megalith
