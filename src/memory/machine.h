// What the machine has and what this process takes: asked, never assumed.
#pragma once
#include <cstdint>
#include <string>

#include "base/units.h"

namespace megalith {

// Memory a run may use on this host: the smallest of the machine's available memory and the limits of the
// process's cgroup (v1 or v2), less a margin of a sixteenth for the kernel and neighbours.
Bytes usable_memory();

// Private and shared memory of this process that is resident now (page cache excluded), and the largest ever. Shared
// pages count in equal parts for those that have them mapped, but a rank's shared state for itself alone.
Bytes resident_memory();
Bytes peak_resident_memory();

// From now on resident_memory looks for state that ranks share, which takes a walk over all mappings.
void expect_shared_state();

// What the memfd is called in which a process shares its state.
std::string shared_state_name(int64_t pid);

// Seconds that the process's threads, those that are alive, have stood ready while other work had the cores; 0 where the
// kernel does not tell.
double processor_wait_seconds();
double thread_wait_seconds();  // the same of the calling thread

int64_t usable_cores();        // respects affinity and cgroup quota
std::string processor_name();  // as the kernel names it

}  // namespace megalith
