// Signals that ask a supervisor to stop, as a descriptor to poll. While this object exists, these signals do not end the
// process.
#pragma once
#include <csignal>

namespace megalith::launch {

class StopRequests {
 public:
  // Takes Ctrl-C, SIGTERM, SIGHUP (a closed terminal) and SIGPIPE (output without a reader). SIGHUP and SIGPIPE stay
  // ignored if the parent process ignores them (nohup).
  StopRequests();
  ~StopRequests();  // restores the previous signal mask
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;
  int descriptor() const { return fd_; }  // readable when there is a new request
  // Number of requests so far: each SIGINT and each SIGTERM counts. SIGHUP and SIGPIPE may repeat, so any number of them
  // counts as one request, and only if there was no SIGINT or SIGTERM.
  int count();
  int first() const { return first_; }  // the signal; 0: none yet

 private:
  int fd_ = -1, asked_ = 0, first_ = 0;
  sigset_t former_;
};

}  // namespace megalith::launch
