// Reads processes of this host from /proc, and starts processes.
#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace megalith::launch {

struct ProcessStat {
  char state = '?';  // R, S, D: alive; T, t: stopped; Z, X: dead
  pid_t parent = 0;
  uint64_t started = 0;  // ticks since boot; pid and start time identify a process
};
std::optional<ProcessStat> process_stat(pid_t pid);
bool is_dead(const std::optional<ProcessStat>& stat);  // true if it does not exist or is a zombie
std::string process_name(pid_t pid);                   // as in /proc/PID/comm

// All processes below this one.
std::vector<pid_t> descendants(pid_t root);

// Kills all descendants of this process and waits for them. This process must be a subreaper, so that orphans are among
// its descendants. Gives up after ten seconds: a process that hangs inside the kernel dies when it returns from there.
void kill_descendants();

// "was killed by signal 9 (Killed)", "ended with exit code 2".
std::string describe_wait_status(int status);
std::string describe_signal(int signal);  // "signal 9 (Killed)"

struct SpawnOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  int stderr_fd = -1;    // -1: this process's own. stdin is /dev/null
  int death_signal = 0;  // signal that the child gets when this thread ends
  int stdout_fd = -1;    // -1: this process's own
};
// Starts a program in a session of its own, so that Ctrl-C in the terminal does not reach it. Throws Fault if it cannot
// be started.
pid_t spawn(const std::vector<std::string>& command, const SpawnOptions& options);

// Forks a process that does `work`, in a session of its own. It ignores signals that ask it to stop, and closes all
// descriptors except those in `kept`. If `detached`, it is not a child of this process. This process must have no other
// threads.
pid_t fork_beside(bool detached, const std::vector<int>& kept, const std::function<void()>& work);

}  // namespace megalith::launch
