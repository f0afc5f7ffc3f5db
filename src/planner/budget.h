// Bytes that a run may take and bytes for its tensors: what no schedule counts lies between them.
#pragma once
#include "base/units.h"
#include "config/config.h"

namespace megalith {

Bytes host_budget(const MemorySettings& memory);  // memory.ram, or what the machine has
Bytes device_of(const MemorySettings& memory);    // memory.device; 0: the host computes

// For tensors, of a budget: of the whole process, of a device.
int64_t room_for_tensors(Bytes budget, Bytes process);
int64_t room_on_device(Bytes budget);

// The other way: the whole process, or the device's memory, when tensors take at most so many bytes.
Bytes process_with(int64_t tensors, Bytes process);
Bytes device_with(int64_t tensors);

}  // namespace megalith
