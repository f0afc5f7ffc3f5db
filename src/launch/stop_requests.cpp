#include "launch/stop_requests.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace megalith::launch {

StopRequests::StopRequests() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, &former_);
  fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

StopRequests::~StopRequests() {
  count();  // what came too late is not to end the process on its way out
  ::close(fd_);
  ::sigprocmask(SIG_SETMASK, &former_, nullptr);
}

int StopRequests::count() {
  signalfd_siginfo request;
  while (::read(fd_, &request, sizeof request) == sizeof request) count_++;
  return count_;
}

}  // namespace megalith::launch
