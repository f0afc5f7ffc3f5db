// A device that is none: its memory is this process's, counted apart and bounded; copies take the time that they would over
// a way of the given bandwidth. Blocks are computed by the same kernels, so that a schedule for a device runs, with every
// number as without one, where there is no device.
#pragma once
#include <memory>

#include "base/units.h"

namespace megalith {

class Device;

// `bandwidth`: bytes a second, each way. One at a time: the allocator has one account for it. (Shared, so that the pointer
// knows how to delete what is only declared here.)
std::shared_ptr<Device> simulated_device(Bytes memory, double bandwidth);

}  // namespace megalith
