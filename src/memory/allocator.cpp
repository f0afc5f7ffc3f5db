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

constexpr size_t kAlign = 64;             // bytes of a cache line and of an AVX-512 register
constexpr size_t kArenaFrom = 256 << 10;  // bytes; malloc serves smaller blocks

// Says under which kind and memory an allocation is counted.
struct Label {
  AllocationKind kind = AllocationKind::workspace;
  Tier tier = Tier::host;
};

// Precedes every small block.
struct Header {
  size_t bytes;  // requested size, rounded up to kAlign
  Label label;
  char pad[kAlign - sizeof(size_t) - sizeof(Label)];
};
static_assert(sizeof(Header) == kAlign);

thread_local Label current;

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<char*>(data) - sizeof(Header)); }

[[noreturn]] void nothing_left(int64_t bytes) {
  throw BudgetExceeded(fmt::format("the system cannot provide {} of memory", show(Bytes(bytes))));
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
    Account& account = account_of(current.tier);
    if (account.budget > 0 && account.use.live + bytes > account.budget)
      throw BudgetExceeded(fmt::format("{} budget exceeded: {} in use, {} more requested, {} allowed",
                                       current.tier == Tier::host ? "memory" : "device memory",
                                       show(Bytes(account.use.live)), show(Bytes(bytes)), show(Bytes(account.budget))));
    // The system hands out addresses without limit, and would kill us when we access the memory.
    if (live() + bytes > machine_) nothing_left(bytes);
    void* data = small ? take_small(rounded) : arena_.take(rounded, backing_of(current.kind));
    if (!small) labels_.emplace(data, current);
    count(current, bytes);
    if (account.use.live > account.use.peak) {
      account.use.peak = account.use.live;
      account.use.at_peak = account.use.now;
    }
    keep_within_peak();
    return data;
  }

  void free(void* data) {
    if (!data) return;
    std::lock_guard lock(mutex_);
    if (!arena_.holds(data)) {
      Header* header = header_of(data);
      count(header->label, -static_cast<int64_t>(header->bytes));
      std::free(header);
      return;
    }
    auto label = labels_.find(data);
    count(label->second, -static_cast<int64_t>(arena_.give(data)));
    labels_.erase(label);
    keep_within_peak();  // keeps within the peak even if the budget or the peak was lowered meanwhile
  }

  void set_budget(int64_t bytes, Tier tier) {
    std::lock_guard lock(mutex_);
    account_of(tier).budget = bytes;
    keep_within_peak();
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    for (Account& account : accounts_) {
      account.use.peak = account.use.live;
      account.use.at_peak = account.use.now;
    }
    keep_within_peak();
  }

  void drop_cached() {
    std::lock_guard lock(mutex_);
    arena_.drop_down_to(0);
  }

  AllocatedMemory use(Tier tier) {
    std::lock_guard lock(mutex_);
    AllocatedMemory use = account_of(tier).use;
    if (tier == Tier::host) use.cached = static_cast<int64_t>(arena_.cached());
    return use;
  }

  SharedState share(int64_t ranks) {
    std::lock_guard lock(mutex_);
    MEGALITH_ASSERT(!shares_, "state can be shared only once");
    expect_shared_state();
    try {
      // Reserves twice the most memory that a rank can use, because holes take addresses. All ranks map all of it.
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
  // Memory that ranks exchange in every step is in shared memory.
  Backing backing_of(AllocationKind kind) const {
    const bool exchanged = kind == AllocationKind::parameters || kind == AllocationKind::gradients;
    return shares_ && exchanged ? Backing::shared : Backing::own;
  }

  struct Account {
    AllocatedMemory use;  // `cached` is not used here: the arena counts cached memory
    int64_t budget = 0;
  };
  Account& account_of(Tier tier) { return accounts_[static_cast<size_t>(tier)]; }
  int64_t live() const { return accounts_[0].use.live + accounts_[1].use.live; }

  void count(Label label, int64_t bytes) {
    AllocatedMemory& use = account_of(label.tier).use;
    use.live += bytes;
    use.now[static_cast<size_t>(label.kind)] += bytes;
  }

  // Keeps live + cached memory, which has pages, within the largest live total so far. So block sizes do not change the peak
  // that the plan predicts. Called before the new block is accessed.
  void keep_within_peak() {
    int64_t most = 0;
    for (const Account& account : accounts_)
      most += account.budget > 0 ? std::min(account.budget, account.use.peak) : account.use.peak;
    arena_.drop_down_to(static_cast<size_t>(std::max<int64_t>(0, most - live())));
  }

  static void* take_small(size_t bytes) {
    void* raw = nullptr;
    if (posix_memalign(&raw, kAlign, bytes + sizeof(Header)) != 0) nothing_left(static_cast<int64_t>(bytes));
    auto* header = new (raw) Header{bytes, current, {}};
    return header + 1;
  }

  std::mutex mutex_;
  std::array<Account, kTiers> accounts_;
  bool shares_ = false;
  const int64_t machine_ = memory_and_swap();
  Arena arena_;
  std::unordered_map<void*, Label> labels_;  // by block of the arena
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

void set_allocation_budget(Bytes budget, Tier tier) { pool().set_budget(budget.value, tier); }

AllocatedMemory allocated_memory(Tier tier) { return pool().use(tier); }

void reset_memory_peak() { pool().reset_peak(); }

void release_cached_memory() {
  pool().drop_cached();
  malloc_trim(0);  // malloc keeps freed memory, too
}

SharedState share_state(int64_t ranks) { return pool().share(ranks); }

void settle_shared_state() { pool().settle_shared(); }

MemoryScope::MemoryScope(AllocationKind kind) : outer_(current.kind) { current.kind = kind; }
MemoryScope::~MemoryScope() { current.kind = outer_; }

TierScope::TierScope(Tier tier) : outer_(current.tier) { current.tier = tier; }
TierScope::~TierScope() { current.tier = outer_; }

}  // namespace megalith
