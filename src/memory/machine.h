// Measures the resources of the machine and of this process.
#pragma once
#include <cstdint>
#include <string>

#include "base/units.h"

namespace megalith {

// Memory that a run may use on this host: the smaller of the machine's available memory and the limits of the process's
// cgroup (v1 or v2). A sixteenth is left for the kernel and other processes.
Bytes usable_memory();

// Private and shared memory of this process that is resident now (without page cache), and the largest ever. A shared
// page is divided equally among the processes that map it. Shared state is an exception: it counts only for the rank
// that owns it.
Bytes resident_memory();
Bytes peak_resident_memory();

// From now on resident_memory looks for state that ranks share. This takes a walk over all mappings.
void expect_shared_state();

// Name of the memfd in which a process shares its state.
std::string shared_state_name(int64_t pid);

// Seconds that the living threads of this process were ready to run but had no core. 0 if the kernel does not report it.
double processor_wait_seconds();
double thread_wait_seconds();  // the same for the calling thread

int64_t usable_cores();        // respects affinity and cgroup quota
std::string processor_name();  // as reported by the kernel

}  // namespace megalith
