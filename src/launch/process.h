// Processes of this host as /proc shows them, and starting one.
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
  uint64_t started = 0;  // ticks since boot: with the pid, who it is
};
std::optional<ProcessStat> process_stat(pid_t pid);
bool is_dead(const std::optional<ProcessStat>& stat);  // gone, or a zombie
std::string process_name(pid_t pid);                   // as in /proc/PID/comm

// All processes below this one.
std::vector<pid_t> descendants(pid_t root);

// Kills what is left below this process and takes it in. The process must be a subreaper, so that what lost its parent
// is below it, too. Gives up after ten seconds: what hangs inside the kernel dies when it comes back from there.
void kill_descendants();

// "was killed by signal 9 (Killed)", "ended with exit code 2".
std::string describe_wait_status(int status);
std::string describe_signal(int signal);  // "signal 9 (Killed)"

struct SpawnOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // besides this process's own
  int stderr_fd = -1;    // -1: this process's own; stdin is /dev/null
  int death_signal = 0;  // what the child gets when this thread ends
  int stdout_fd = -1;    // -1: this process's own
};
// Starts a program in a session of its own, out of reach of the terminal's Ctrl-C. Fault when it cannot be started.
pid_t spawn(const std::vector<std::string>& command, const SpawnOptions& options);

// Forks a process that does `work` beside this one: in a session of its own, deaf to signals that ask it to stop, with
// no descriptor of this process but those in `kept`, and nobody's child where `detached`. This process must have no
// other threads.
pid_t fork_beside(bool detached, const std::vector<int>& kept, const std::function<void()>& work);

}  // namespace megalith::launch
