// A device simulated in this process. Its memory is host memory with its own budget. Copies take as long as they would over
// a link of the given bandwidth. Blocks use the same kernels as without a device, so a schedule for a device runs on any
// machine and computes the same numbers.
#pragma once
#include <memory>

#include "base/units.h"

namespace megalith {

class Device;

// `bandwidth`: bytes per second, each way. Only one device may exist at a time, because the allocator has one budget for
// it. (Returns a shared_ptr because it can delete a class that is only declared here.)
std::shared_ptr<Device> simulated_device(Bytes memory, double bandwidth);

}  // namespace megalith
