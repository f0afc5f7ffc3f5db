#include "optim/random_bits.h"

#include <algorithm>

#include "optim/kernel.h"

namespace megalith {
namespace {

constexpr int64_t kBlocks = 64;           // of Philox, at once
constexpr int64_t kGroup = 8 * kBlocks;   // elements

// Philox4x32-10 (base/philox.h) of kBlocks counters in step.
MEGALITH_KERNEL void group_bits(uint64_t counter, uint64_t stream, uint64_t key, uint16_t* __restrict out) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int64_t b = 0; b < kBlocks; b++) {
    c0[b] = static_cast<uint32_t>(counter) + static_cast<uint32_t>(b);  // the counter is a multiple of kBlocks
    c1[b] = static_cast<uint32_t>(counter >> 32);
    c2[b] = static_cast<uint32_t>(stream);
    c3[b] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; round++) {
    for (int64_t b = 0; b < kBlocks; b++) {
      const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0[b], p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2[b];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
      c0[b] = n0;
      c2[b] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const uint32_t* words[4] = {c0, c1, c2, c3};
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
