#include "optim/random_bits.h"

#include "base/philox_blocks.h"
#include "optim/kernel.h"

namespace megalith {
namespace {

constexpr int64_t kBlocks = 64;           // Philox blocks computed at once
constexpr int64_t kGroup = 8 * kBlocks;   // elements made at once

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
  fill_by_groups<kGroup>(begin, out, [&](int64_t first, uint16_t* into) {
    group_bits(static_cast<uint64_t>(first / kGroup * kBlocks), stream.stream(), stream.key(), into);
  });
}

}  // namespace megalith
