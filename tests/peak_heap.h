// How much memory a piece of code takes from the heap at once. It replaces operator new, so that only one file of a
// test program can include it.
#pragma once
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace megalith {

inline std::atomic<int64_t> heap_held = 0, heap_peak = 0;

// Measures from its beginning on; one at a time.
class PeakHeap {
 public:
  PeakHeap() : before_(heap_held) { heap_peak = before_; }
  int64_t grown() const { return heap_peak - before_; }  // the largest growth of the heap since the constructor

 private:
  int64_t before_;
};

}  // namespace megalith

// Not inlined, or the compiler sees memory of operator new go to free().
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t held = megalith::heap_held += size;
  for (int64_t peak = megalith::heap_peak; held > peak && !megalith::heap_peak.compare_exchange_weak(peak, held);) {
  }
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  megalith::heap_held -= static_cast<int64_t>(memory ? malloc_usable_size(memory) : 0);
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

// std::stable_sort allocates with this operator and frees with the ordinary one.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
