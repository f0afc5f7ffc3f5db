// Moves the inputs that layers keep for their recomputation to disk between forward and backward. With a device, the inputs
// go to the host's memory.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Returns the training step with offloaded inputs of some layers. `offload_input` writes an input when forward has used it.
// `reload_input` reads it shortly before the layer is recomputed. At most two inputs wait to be written, so computing waits
// for the disk rather than fill memory. At most two inputs are reloaded early. Only layers with Keep::input can offload.
// `offloads` has one entry per block; empty means that no block offloads. Call this before with_residency.
Schedule with_input_offload(Schedule step, std::vector<bool> offloads);

// Returns the bytes of the input that each block offloads to disk, per micro-batch. Empty if no block offloads to disk.
std::vector<int64_t> offloaded_input_bytes(const Schedule& step);

}  // namespace megalith
