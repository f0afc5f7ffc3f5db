// A process beside the ranks of one host, outside MPI. It reads their status pages, tells the supervisor, passes
// signals on; and when the line to the supervisor ends, for whatever reason, it kills what is left of the run on this
// host and removes its folder. So nothing outlives a supervisor that was killed or a link that was cut.
#pragma once
#include <sys/types.h>

#include "launch/host_folder.h"

namespace megalith::launch {

enum class MonitorPlace {
  beside_supervisor,  // a socket pair: only its end counts
  away,               // TCP: silence counts as the end, too
};

// Forks one that holds `folder` and `socket` and nothing else of this process; away it is nobody's child. Messages out:
// {"ranks": [...]} whenever a rank changes, and four times a second. In: {"signal": N} for all ranks, {"launcher": PID}
// (who to wait for at the end), {} (still there).
pid_t fork_host_monitor(int socket, const HostFolder& folder, MonitorPlace place);

}  // namespace megalith::launch
