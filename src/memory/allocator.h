// The process's CPU allocator: everything ATen allocates goes through it, counted by kind, cached, and refused
// beyond the budget. Blocks of 256 KiB and more count in whole pages and begin on a page, those of 8 MiB and more
// on a huge page. Process-wide by nature (LibTorch has one CPU allocator). Memory of a simulated device is allocated here,
// too, and counted apart, against a budget of its own.
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

// An allocation that would break the budget.
struct BudgetExceeded : Fault {
  using Fault::Fault;
};

struct AllocatedMemory {
  std::array<int64_t, kAllocationKinds> now{};      // live bytes by kind
  std::array<int64_t, kAllocationKinds> at_peak{};  // by kind at the moment when the total was largest
  int64_t live = 0;
  int64_t peak = 0;    // largest total since the last reset_peak
  int64_t cached = 0;  // freed, but with their pages kept for what comes, the device's among the host's; of both tiers
                       // together live + cached <= peak
};

// Call first in main, before any tensor exists.
void install_allocator();

// Largest total of live bytes; 0 = no limit.
void set_allocation_budget(Bytes budget, Tier tier = Tier::host);

AllocatedMemory allocated_memory(Tier tier = Tier::host);
void reset_memory_peak();  // of both tiers
// Gives cached memory back to the system.
void release_cached_memory();

// Memory that other processes may map, by its descriptor: all of it lies at `base`, most of it without pages.
struct SharedState {
  int fd = -1;
  std::byte* base = nullptr;
  int64_t bytes = 0;
};
// From now on large blocks of parameters and gradients lie in such memory; at most once. `ranks` share the machine.
// Empty when the system gives no addresses for it.
SharedState share_state(int64_t ranks);
// To be called when what stays is there: puts it on huge pages where the system lets us.
void settle_shared_state();

// Allocations of this thread count as `kind` while the scope lives. Outside of any scope: workspace.
class MemoryScope {
 public:
  explicit MemoryScope(AllocationKind kind);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  AllocationKind outer_;
};

// Allocations of this thread are in the memory of `tier` while the scope lives. Outside of any scope: the host's.
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
