#include "launch/stop_requests.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

#include "base/stop_signals.h"

namespace megalith::launch {

StopRequests::StopRequests() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM}) sigaddset(&set, signal);
  // A blocked signal is queued even if it is ignored.
  for (int signal : {SIGHUP, SIGPIPE})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, &former_);
  fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

StopRequests::~StopRequests() {
  count();  // drops late signals, so that they do not kill the process when it exits
  ::close(fd_);
  ::sigprocmask(SIG_SETMASK, &former_, nullptr);
}

int StopRequests::count() {
  signalfd_siginfo request;
  while (::read(fd_, &request, sizeof request) == sizeof request) {
    const int signal = static_cast<int>(request.ssi_signo);
    if (first_ == 0) first_ = signal;
    if (signal == SIGINT || signal == SIGTERM) asked_++;
  }
  return std::max(asked_, first_ != 0 ? 1 : 0);
}

}  // namespace megalith::launch
