// Converts between the budget of a run and the bytes for its tensors. The difference is memory that no schedule counts.
#pragma once
#include "base/units.h"
#include "config/config.h"

namespace megalith {

Bytes host_budget(const MemorySettings& memory);  // memory.ram, or the memory of the machine
Bytes device_of(const MemorySettings& memory);    // memory.device; 0: the host computes

// The maximum memory of a process, item by item. `memory` and `train` accept a run if the sum fits.
struct ProcessBound {
  Bytes process;  // the process itself (planner/process.h)
  Bytes tensors;  // at most, in any order of the lanes
  Bytes gaps;     // between parameters, for alignment
  Bytes save;     // buffers of a checkpoint on its way to disk
  Bytes streams;  // requests and threads of the disk tier
  Bytes rest;     // token ids, masks, small blocks of the system's allocator, stacks
  Bytes sum() const { return process + tensors + gaps + save + streams + rest; }
};
ProcessBound process_bound(int64_t tensors, Bytes process, const MemorySettings& memory);
// The reverse: returns the bytes that tensors may use if the process has this budget.
int64_t room_for_tensors(Bytes budget, Bytes process, const MemorySettings& memory);

// The same for the memory of a device.
int64_t room_on_device(Bytes budget);
Bytes device_with(int64_t tensors);

}  // namespace megalith
