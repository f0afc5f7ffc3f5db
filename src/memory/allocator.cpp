#include "memory/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <list>
#include <mutex>
#include <unordered_map>

namespace megalith {
namespace {

constexpr size_t kAlign = 64;            // a cache line, and an AVX-512 register
constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kCacheFrom = 256 << 10; // smaller blocks are malloc's business

// Stands in front of every block.
struct Header {
  size_t bytes;      // as asked for, rounded up to kAlign
  size_t offset;     // from the start of the system's block to the data
  AllocationKind kind;
  char pad[kAlign - 2 * sizeof(size_t) - sizeof(AllocationKind)];
};
static_assert(sizeof(Header) == kAlign);

thread_local AllocationKind current_kind = AllocationKind::workspace;

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<char*>(data) - sizeof(Header)); }

class Pool {
 public:
  void* allocate(size_t wanted) {
    size_t bytes = (wanted + kAlign - 1) / kAlign * kAlign;
    std::unique_lock lock(mutex_);
    auto signed_bytes = static_cast<int64_t>(bytes);
    if (budget_ > 0 && use_.live + signed_bytes > budget_)
      throw BudgetExceeded(fmt::format("memory budget: {} in use, {} more wanted, {} allowed", show(Bytes(use_.live)),
                                       show(Bytes(signed_bytes)), show(Bytes(budget_))));
    void* data = take_cached(bytes);
    if (!data) {
      // What is resident (live + cached) never grows beyond the largest live total seen: the peak stays what
      // the plan says, whatever sizes come and go.
      int64_t room = std::max(use_.peak, use_.live + signed_bytes) - use_.live - signed_bytes;
      trim(room);
      lock.unlock();
      data = from_system(bytes);
      lock.lock();
    }
    Header* header = header_of(data);
    header->kind = current_kind;
    use_.live += signed_bytes;
    use_.now[static_cast<size_t>(header->kind)] += signed_bytes;
    if (use_.live > use_.peak) {
      use_.peak = use_.live;
      use_.at_peak = use_.now;
    }
    return data;
  }

  void free(void* data) {
    if (!data) return;
    Header* header = header_of(data);
    auto bytes = static_cast<int64_t>(header->bytes);
    std::unique_lock lock(mutex_);
    use_.live -= bytes;
    use_.now[static_cast<size_t>(header->kind)] -= bytes;
    if (header->bytes < kCacheFrom) {
      lock.unlock();
      to_system(data);
      return;
    }
    use_.cached += bytes;
    oldest_first_.push_back(data);
    by_size_.emplace(header->bytes, std::prev(oldest_first_.end()));
  }

  void trim(int64_t keep) {
    while (use_.cached > keep && !oldest_first_.empty()) {
      void* data = oldest_first_.front();
      auto [begin, end] = by_size_.equal_range(header_of(data)->bytes);
      for (auto it = begin; it != end; ++it)
        if (it->second == oldest_first_.begin()) {
          by_size_.erase(it);
          break;
        }
      oldest_first_.pop_front();
      use_.cached -= static_cast<int64_t>(header_of(data)->bytes);
      to_system(data);
    }
  }

  std::mutex mutex_;
  AllocatedMemory use_;
  int64_t budget_ = 0;

 private:
  void* take_cached(size_t bytes) {
    auto found = by_size_.find(bytes);
    if (found == by_size_.end()) return nullptr;
    void* data = *found->second;
    oldest_first_.erase(found->second);
    by_size_.erase(found);
    use_.cached -= static_cast<int64_t>(bytes);
    return data;
  }

  static void* from_system(size_t bytes) {
    // Large blocks start on a huge page, data first thing after one cache line of header.
    bool huge = bytes >= 4 * kHuge;
    void* raw = nullptr;
    if (posix_memalign(&raw, huge ? kHuge : kAlign, bytes + sizeof(Header)) != 0)
      throw BudgetExceeded(fmt::format("the system has no {} of memory left", show(Bytes(static_cast<int64_t>(bytes)))));
    if (huge) madvise(raw, bytes + sizeof(Header), MADV_HUGEPAGE);
    char* data = static_cast<char*>(raw) + sizeof(Header);
    Header* header = header_of(data);
    header->bytes = bytes;
    header->offset = sizeof(Header);
    return data;
  }

  static void to_system(void* data) { std::free(static_cast<char*>(data) - header_of(data)->offset); }

  std::list<void*> oldest_first_;
  std::unordered_multimap<size_t, std::list<void*>::iterator> by_size_;
};

Pool& pool() {
  static Pool* instance = new Pool;  // never destroyed: tensors in static storage may outlive main
  return *instance;
}

struct CountingAllocator final : c10::Allocator {
  static void release(void* data) { pool().free(data); }
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes ? pool().allocate(bytes) : nullptr;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

std::string_view name(AllocationKind kind) {
  constexpr std::string_view names[] = {"parameters", "gradients", "optimizer", "activations", "workspace"};
  return names[static_cast<size_t>(kind)];
}

void install_allocator() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

void set_allocation_budget(Bytes budget) {
  std::lock_guard lock(pool().mutex_);
  pool().budget_ = budget.value;
}

AllocatedMemory allocated_memory() {
  std::lock_guard lock(pool().mutex_);
  return pool().use_;
}

void reset_memory_peak() {
  std::lock_guard lock(pool().mutex_);
  pool().use_.peak = pool().use_.live;
  pool().use_.at_peak = pool().use_.now;
}

void release_cached_memory() {
  std::lock_guard lock(pool().mutex_);
  pool().trim(0);
  malloc_trim(0);  // the system's allocator keeps what it is given back, too
}

MemoryScope::MemoryScope(AllocationKind kind) : outer_(current_kind) { current_kind = kind; }
MemoryScope::~MemoryScope() { current_kind = outer_; }

}  // namespace megalith
