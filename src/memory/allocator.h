// The process's CPU allocator. Everything that ATen allocates goes through it. It counts bytes by kind, caches freed
// memory, and refuses allocations beyond the budget. Blocks of 256 KiB and more are counted in whole pages and aligned
// to a page. Blocks of 8 MiB and more are aligned to a huge page. There is one for the whole process, as LibTorch has
// one CPU allocator. Memory of a simulated device is allocated here, too, but counted separately against its own budget.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/tier.h"
#include "base/units.h"

namespace megalith {

enum class AllocationKind : uint8_t { parameters, gradients, optimizer, activations, workspace, staging };
inline constexpr int kAllocationKinds = 6;  // staging: buffers of transfers from and to disk
std::string_view name(AllocationKind kind);

// Thrown by an allocation that would exceed the budget.
struct BudgetExceeded : Fault {
  using Fault::Fault;
};

struct AllocatedMemory {
  std::array<int64_t, kAllocationKinds> now{};      // live bytes by kind
  std::array<int64_t, kAllocationKinds> at_peak{};  // live bytes by kind when the total was largest
  int64_t live = 0;
  int64_t peak = 0;    // largest total since the last reset_peak
  int64_t cached = 0;  // freed bytes whose pages are kept for reuse; the host's number includes the device's.
                       // Over both tiers together, live + cached <= peak
};

// Call it first in main, before any tensor exists.
void install_allocator();

// Sets the largest total of live bytes; 0 = no limit.
void set_allocation_budget(Bytes budget, Tier tier = Tier::host);

AllocatedMemory allocated_memory(Tier tier = Tier::host);
void reset_memory_peak();  // for both tiers
// Returns cached memory to the system.
void release_cached_memory();

// Memory that other processes may map by its descriptor. The whole range is mapped at `base`. Most of the range has no
// pages.
struct SharedState {
  int fd = -1;
  std::byte* base = nullptr;
  int64_t bytes = 0;
};
// From now on, large blocks of parameters and gradients are allocated in such memory. Call it at most once. `ranks`
// ranks share the machine. Returns an empty value if the system has no addresses for it.
SharedState share_state(int64_t ranks);
// Call it when all permanent state is allocated: moves it to huge pages if the system allows that.
void settle_shared_state();

// Allocations of this thread count as `kind` while the scope exists. Outside of any scope they count as workspace.
class MemoryScope {
 public:
  explicit MemoryScope(AllocationKind kind);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  AllocationKind outer_;
};

// Allocations of this thread are in the memory of `tier` while the scope exists. Outside of any scope they are on the
// host.
class TierScope {
 public:
  explicit TierScope(Tier tier);
  ~TierScope();
  TierScope(const TierScope&) = delete;
  TierScope& operator=(const TierScope&) = delete;

 private:
  Tier outer_;
};

}  // namespace megalith
