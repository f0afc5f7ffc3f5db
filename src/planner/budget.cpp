#include "planner/budget.h"

#include "memory/machine.h"

namespace megalith {
namespace {

// What no schedule counts: token ids, masks and tables of positions, small blocks of the system's allocator, stacks.
constexpr int64_t kUncounted = int64_t{24} << 20;
// The same on a device: masks and tables of positions.
constexpr int64_t kUncountedOnDevice = int64_t{4} << 20;
// Of tensors: alignment and gaps between parameters.
constexpr double kCounted = 0.985;

int64_t counted(Bytes bytes) { return static_cast<int64_t>(static_cast<double>(bytes.value) * kCounted); }
Bytes uncounted(int64_t tensors) { return Bytes(static_cast<int64_t>(static_cast<double>(tensors) / kCounted)); }

}  // namespace

Bytes device_of(const MemorySettings& memory) { return memory.device.value_or(Bytes(0)); }

Bytes host_budget(const MemorySettings& memory) {
  if (memory.ram) return *memory.ram;
  return usable_memory() - device_of(memory);  // a simulated device has its memory from the same machine
}

int64_t room_for_tensors(Bytes budget, Bytes process) { return counted(budget - process - Bytes(kUncounted)); }
int64_t room_on_device(Bytes budget) { return counted(budget - Bytes(kUncountedOnDevice)); }

Bytes process_with(int64_t tensors, Bytes process) { return uncounted(tensors) + Bytes(kUncounted) + process; }
Bytes device_with(int64_t tensors) { return uncounted(tensors) + Bytes(kUncountedOnDevice); }

}  // namespace megalith
