// Inputs that layers keep for their recomputation, on disk from forward to backward; of a device, in the host's memory.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// The training step with the inputs of some layers parked: written out when forward has used them (`park`), read again
// shortly before the layer is recomputed (`unpark`). At most two wait to go out: computing waits for the disk rather than
// fill memory; and at most two come back early. Only layers that keep their input and nothing else can park. `offloads`: by
// block; empty: none. Comes before with_residency.
Schedule with_input_offload(Schedule step, std::vector<bool> offloads);

// By block: bytes of a micro-batch's input that offloads on disk; empty: none does.
std::vector<int64_t> offloaded_input_bytes(const Schedule& step);

}  // namespace megalith
