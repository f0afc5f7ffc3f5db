// Computes Philox (base/philox.h) for many counters at once, in loops that the compiler vectorises.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

namespace megalith {

// Writes word w of block `counter + b` to words[w][b], for b < kBlocks. `counter` is a multiple of kBlocks, and kBlocks is a
// power of two. The function is inlined, so it is compiled for the instruction set of its caller.
template <int64_t kBlocks>
inline __attribute__((always_inline)) void philox_blocks(uint64_t counter, uint64_t stream, uint64_t key,
                                                         uint32_t (&words)[4][kBlocks]) {
  auto& [c0, c1, c2, c3] = words;
  for (int64_t b = 0; b < kBlocks; b++) {
    c0[b] = static_cast<uint32_t>(counter) + static_cast<uint32_t>(b);
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
}

// Fills `out` with elements [begin, begin + out.size()) of a stream that is made in groups of kGroup elements. make(first,
// into) makes the group that begins with element `first`, a multiple of kGroup.
template <int64_t kGroup, class Number, class Make>
void fill_by_groups(int64_t begin, std::span<Number> out, const Make& make) {
  const int64_t end = begin + std::ssize(out);
  Number part[kGroup];
  for (int64_t first = begin / kGroup * kGroup; first < end; first += kGroup) {
    const int64_t from = std::max(begin, first), to = std::min(end, first + kGroup);
    const bool whole = to - from == kGroup;
    make(first, whole ? out.data() + (first - begin) : part);
    if (!whole) std::copy(part + (from - first), part + (to - first), out.data() + (from - begin));
  }
}

}  // namespace megalith
