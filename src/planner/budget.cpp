#include "planner/budget.h"

#include "memory/machine.h"

namespace megalith {
namespace {

// The buffers of checkpoint/write_behind.
constexpr int64_t kSave = int64_t{8} << 20;
// For a run that spills: queues, threads of lanes, and memory that the system's allocator keeps after the disk was measured.
constexpr int64_t kStreams = int64_t{4} << 20;
// Measured: 4 to 10 MiB. It is largest if many tensors are just small enough for the system's allocator.
constexpr int64_t kRest = int64_t{12} << 20;
// Masks and tables of positions.
constexpr int64_t kUncountedOnDevice = int64_t{4} << 20;
// Counted share of the memory of tensors. The rest is alignment and gaps between parameters.
constexpr double kCounted = 0.985;

int64_t counted(Bytes bytes) { return static_cast<int64_t>(static_cast<double>(bytes.value) * kCounted); }
Bytes uncounted(int64_t tensors) { return Bytes(static_cast<int64_t>(static_cast<double>(tensors) / kCounted)); }

}  // namespace

Bytes device_of(const MemorySettings& memory) { return memory.device.value_or(Bytes(0)); }

Bytes host_budget(const MemorySettings& memory) {
  if (memory.ram) return *memory.ram;
  return usable_memory() - device_of(memory);  // a simulated device has its memory from the same machine
}

ProcessBound process_bound(int64_t tensors, Bytes process, const MemorySettings& memory) {
  return {.process = process,
          .tensors = Bytes(tensors),
          .gaps = uncounted(tensors) - Bytes(tensors),
          .save = Bytes(kSave),
          .streams = Bytes(memory.spill.empty() ? 0 : kStreams),
          .rest = Bytes(kRest)};
}

int64_t room_for_tensors(Bytes budget, Bytes process, const MemorySettings& memory) {
  return counted(budget - process_bound(0, process, memory).sum());
}

int64_t room_on_device(Bytes budget) { return counted(budget - Bytes(kUncountedOnDevice)); }
Bytes device_with(int64_t tensors) { return uncounted(tensors) + Bytes(kUncountedOnDevice); }

}  // namespace megalith
