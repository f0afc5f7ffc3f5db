#include "launch/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"

namespace megalith::launch {

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const size_t name_end = text.rfind(')');  // a process name may contain any character
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  ProcessStat stat;
  std::string skipped;
  rest >> stat.state >> stat.parent;
  for (int field = 5; field < 22; field++) rest >> skipped;
  rest >> stat.started;
  return rest ? std::optional(stat) : std::nullopt;
}

bool is_dead(const std::optional<ProcessStat>& stat) {
  return !stat || stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

std::string process_name(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string text;
  std::getline(file, text);
  return text;
}

std::vector<pid_t> descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  if (DIR* proc = ::opendir("/proc")) {
    while (const dirent* entry = ::readdir(proc)) {
      pid_t pid = 0;
      const char* end = entry->d_name + std::strlen(entry->d_name);
      if (auto [at, error] = std::from_chars(entry->d_name, end, pid); error != std::errc() || at != end) continue;
      if (auto stat = process_stat(pid)) children.emplace(stat->parent, pid);
    }
    ::closedir(proc);
  }
  std::vector<pid_t> found{root};
  for (size_t i = 0; i < found.size(); i++) {
    auto [begin, end] = children.equal_range(found[i]);
    for (auto it = begin; it != end; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  return found;
}

void kill_descendants() {
  constexpr int kLooks = 2000, kBetween_us = 5000;
  for (int look = 0; look < kLooks; look++) {
    const std::vector<pid_t> left = descendants(::getpid());
    if (left.empty()) return;
    for (pid_t pid : left) {
      if (!is_dead(process_stat(pid))) ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
    ::usleep(kBetween_us);
  }
}

std::string describe_signal(int signal) { return fmt::format("signal {} ({})", signal, ::strsignal(signal)); }

std::string describe_wait_status(int status) {
  if (WIFSIGNALED(status)) return "was killed by " + describe_signal(WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

pid_t spawn(const std::vector<std::string>& command, const SpawnOptions& options) {
  // All allocations happen before the fork.
  std::vector<std::string> held;
  for (char** entry = environ; *entry; entry++) {
    const std::string_view text(*entry);
    const std::string_view key = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [name, value] : options.environment) replaced |= name == key;
    if (!replaced) held.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) held.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : held) envp.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  int report[2];  // closed by exec; a failed exec writes errno
  if (::pipe2(report, O_CLOEXEC) != 0) throw Fault(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setsid();
    if (options.death_signal != 0) ::prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (::getppid() != parent) ::_exit(127);
    if (int null = ::open("/dev/null", O_RDONLY); null >= 0) ::dup2(null, STDIN_FILENO);
    if (options.stdout_fd >= 0) ::dup2(options.stdout_fd, STDOUT_FILENO);
    if (options.stderr_fd >= 0) ::dup2(options.stderr_fd, STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    [[maybe_unused]] ssize_t written = ::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(report[1]);
  int error = pid < 0 ? errno : 0;
  if (pid >= 0 && ::read(report[0], &error, sizeof error) > 0) ::waitpid(pid, nullptr, 0);
  ::close(report[0]);
  if (error != 0) throw Fault(fmt::format("cannot start {}: {}", command.front(), std::strerror(error)));
  return pid;
}

pid_t fork_beside(bool detached, const std::vector<int>& kept, const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid < 0) throw Fault(fmt::format("cannot create a process: {}", std::strerror(errno)));
  if (pid > 0) {
    if (detached) ::waitpid(pid, nullptr, 0);
    return pid;
  }
  if (detached && ::fork() != 0) ::_exit(0);
  ::setsid();
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  // If a pipe or terminal stayed open here, its reader would wait for this process.
  const auto is_kept = [&](int fd) { return std::find(kept.begin(), kept.end(), fd) != kept.end(); };
  const int null = ::open("/dev/null", O_RDWR), most = static_cast<int>(::sysconf(_SC_OPEN_MAX));
  for (int fd = 0; fd < std::min(most, 4096); fd++) {
    if (is_kept(fd)) continue;
    fd <= STDERR_FILENO ? ::dup2(null, fd) : ::close(fd);
  }
  try {
    work();
  } catch (const std::exception&) {  // there is no output to report it to
    ::_exit(static_cast<int>(ExitCode::bug));
  }
  ::_exit(0);
}

}  // namespace megalith::launch
