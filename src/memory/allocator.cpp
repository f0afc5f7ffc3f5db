#include "memory/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "memory/arena.h"
#include "memory/machine.h"

namespace megalith {
namespace {

constexpr size_t kAlign = 64;             // a cache line, and an AVX-512 register
constexpr size_t kArenaFrom = 256 << 10;  // smaller blocks are malloc's business

// Stands in front of every small block.
struct Header {
  size_t bytes;  // as asked for, rounded up to kAlign
  AllocationKind kind;
  char pad[kAlign - sizeof(size_t) - sizeof(AllocationKind)];
};
static_assert(sizeof(Header) == kAlign);

thread_local AllocationKind current_kind = AllocationKind::workspace;

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<char*>(data) - sizeof(Header)); }

[[noreturn]] void nothing_left(int64_t bytes) {
  throw BudgetExceeded(fmt::format("the system has no {} of memory left", show(Bytes(bytes))));
}

int64_t memory_and_swap() {
  struct sysinfo machine = {};
  sysinfo(&machine);
  return static_cast<int64_t>((machine.totalram + machine.totalswap) * machine.mem_unit);
}

class Pool {
 public:
  void* allocate(size_t wanted) {
    const bool small = wanted < kArenaFrom;
    const size_t rounded = small ? (wanted + kAlign - 1) / kAlign * kAlign : Arena::rounded(wanted);
    const auto bytes = static_cast<int64_t>(rounded);
    std::lock_guard lock(mutex_);
    if (budget_ > 0 && use_.live + bytes > budget_)
      throw BudgetExceeded(fmt::format("memory budget: {} in use, {} more wanted, {} allowed", show(Bytes(use_.live)),
                                       show(Bytes(bytes)), show(Bytes(budget_))));
    // Addresses cost nothing, so the system would promise this and kill us at the touch.
    if (use_.live + bytes > machine_) nothing_left(bytes);
    void* data = small ? take_small(rounded) : arena_.take(rounded, backing_of(current_kind));
    if (!small) kinds_.emplace(data, current_kind);
    count(current_kind, bytes);
    if (use_.live > use_.peak) {
      use_.peak = use_.live;
      use_.at_peak = use_.now;
    }
    keep_within_peak();
    return data;
  }

  void free(void* data) {
    if (!data) return;
    std::lock_guard lock(mutex_);
    if (!arena_.holds(data)) {
      Header* header = header_of(data);
      count(header->kind, -static_cast<int64_t>(header->bytes));
      std::free(header);
      return;
    }
    auto kind = kinds_.find(data);
    count(kind->second, -static_cast<int64_t>(arena_.give(data)));
    kinds_.erase(kind);
    keep_within_peak();  // no more than the peak even if the budget or the peak was lowered meanwhile
  }

  void set_budget(int64_t bytes) {
    std::lock_guard lock(mutex_);
    budget_ = bytes;
    keep_within_peak();
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    use_.peak = use_.live;
    use_.at_peak = use_.now;
    keep_within_peak();
  }

  void drop_cached() {
    std::lock_guard lock(mutex_);
    arena_.drop_down_to(0);
  }

  AllocatedMemory use() {
    std::lock_guard lock(mutex_);
    AllocatedMemory use = use_;
    use.cached = static_cast<int64_t>(arena_.cached());
    return use;
  }

  SharedState share(int64_t ranks) {
    std::lock_guard lock(mutex_);
    MEGALITH_ASSERT(!shares_, "state is shared once");
    expect_shared_state();
    try {
      // Twice what a rank can have: room for holes. All ranks map all of it.
      const AddressSpace& space = arena_.share(static_cast<size_t>(2 * machine_ / ranks));
      shares_ = true;
      return {space.fd(), reinterpret_cast<std::byte*>(space.begin()), static_cast<int64_t>(space.end() - space.begin())};
    } catch (const BudgetExceeded&) {
      return {};
    }
  }

  void settle_shared() {
    std::lock_guard lock(mutex_);
    arena_.make_shared_huge();
  }

 private:
  // What ranks exchange block by block, step by step.
  Backing backing_of(AllocationKind kind) const {
    const bool exchanged = kind == AllocationKind::parameters || kind == AllocationKind::gradients;
    return shares_ && exchanged ? Backing::shared : Backing::own;
  }

  void count(AllocationKind kind, int64_t bytes) {
    use_.live += bytes;
    use_.now[static_cast<size_t>(kind)] += bytes;
  }

  // What has pages (live + cached) never grows beyond the largest live total seen: the peak stays what the plan
  // says, whatever sizes come and go. Called before anyone touches what was just taken.
  void keep_within_peak() {
    const int64_t most = budget_ > 0 ? std::min(budget_, use_.peak) : use_.peak;
    arena_.drop_down_to(static_cast<size_t>(std::max<int64_t>(0, most - use_.live)));
  }

  static void* take_small(size_t bytes) {
    void* raw = nullptr;
    if (posix_memalign(&raw, kAlign, bytes + sizeof(Header)) != 0) nothing_left(static_cast<int64_t>(bytes));
    auto* header = new (raw) Header{bytes, current_kind, {}};
    return header + 1;
  }

  std::mutex mutex_;
  AllocatedMemory use_;  // but for cached, which the arena knows
  int64_t budget_ = 0;
  bool shares_ = false;
  const int64_t machine_ = memory_and_swap();
  Arena arena_;
  std::unordered_map<void*, AllocationKind> kinds_;  // of the arena's blocks
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
  constexpr std::string_view names[] = {"parameters", "gradients", "optimizer", "activations", "workspace", "staging"};
  return names[static_cast<size_t>(kind)];
}

void install_allocator() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

void set_allocation_budget(Bytes budget) { pool().set_budget(budget.value); }

AllocatedMemory allocated_memory() { return pool().use(); }

void reset_memory_peak() { pool().reset_peak(); }

void release_cached_memory() {
  pool().drop_cached();
  malloc_trim(0);  // the system's allocator keeps what it is given back, too
}

SharedState share_state(int64_t ranks) { return pool().share(ranks); }

void settle_shared_state() { pool().settle_shared(); }

MemoryScope::MemoryScope(AllocationKind kind) : outer_(current_kind) { current_kind = kind; }
MemoryScope::~MemoryScope() { current_kind = outer_; }

}  // namespace megalith
