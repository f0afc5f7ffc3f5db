// A process beside the ranks of one host, outside MPI. It reads their status pages, reports to the supervisor and passes
// signals on. When the connection to the supervisor ends, for any reason, it kills what is left of the run on this host.
// It then removes the run's folder. So no process survives a supervisor that was killed, or a cut connection.
#pragma once
#include <sys/types.h>

#include "launch/host_folder.h"

namespace megalith::launch {

enum class MonitorPlace {
  beside_supervisor,  // a socket pair: the supervisor is dead if the connection ends
  away,               // TCP: the supervisor is also dead if it is silent
};

// Forks a monitor that keeps `folder` and `socket` open, and no other descriptor of this process. With `away` it is
// detached from this process. It sends {"ranks": [...]} when a rank changes, and four times a second. It receives
// {"signal": N} for all ranks, {"launcher": PID} (the process to wait for at the end), and {} (the supervisor is alive).
pid_t fork_host_monitor(int socket, const HostFolder& folder, MonitorPlace place);

}  // namespace megalith::launch
