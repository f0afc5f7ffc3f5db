// Compiles loops over elements for vector units, and spreads them over threads.
#pragma once
#include <cstdint>
#include <functional>

// Put MEGALITH_KERNEL before a free function whose loops should vectorise. The function is compiled for each level of
// x86-64, and the best level is chosen at run time. The compiler adds no fused multiply-adds. So all levels give the same
// bits, and so do elements in the body and in the remainder of a loop. (Fusion would not help: these loops wait for memory.)
// Loops with a square root vectorise only if the whole file is compiled with -fno-math-errno, because GCC decides about
// the built-in before it sees the attribute.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MEGALITH_KERNEL                             \
  __attribute__((optimize("O3", "fp-contract=off"), \
                 target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MEGALITH_KERNEL
#endif

namespace megalith {

// Calls body(begin, end) for fixed chunks of [0, n), on LibTorch's threads.
void for_chunks(int64_t n, int64_t chunk, const std::function<void(int64_t begin, int64_t end)>& body);

// Number of elements in one task of a thread: 64 KiB per array. The work is long compared to starting a thread, and the data
// is small compared to caches.
inline constexpr int64_t kElementChunk = 16384;

}  // namespace megalith
