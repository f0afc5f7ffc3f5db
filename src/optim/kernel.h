// How the loops over elements are compiled and spread over threads.
#pragma once
#include <cstdint>
#include <functional>

// Put before a free function whose loops should vectorise: compiled once for each level of x86-64, the best
// one is taken at run time. No fused multiply-add where the source has none, so every level, and every
// element whether it is in the body or the rest of a loop, gets the same bits. (These loops wait for memory;
// the fusion would gain nothing.) Loops with a square root vectorise only where the whole file is compiled
// with -fno-math-errno: GCC decides for the built-in before it sees the attribute.
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

// Elements a thread takes at once: 64 KiB a stream, long against a thread's start, small against caches.
inline constexpr int64_t kElementChunk = 16384;

}  // namespace megalith
