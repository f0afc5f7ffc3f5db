// Signals that ask a supervisor to stop, as something to poll: while this exists they end nothing by themselves.
#pragma once
#include <csignal>

namespace megalith::launch {

class StopRequests {
 public:
  // Takes Ctrl-C, SIGTERM, SIGHUP (a closed terminal) and SIGPIPE (output without a reader). SIGHUP and SIGPIPE stay
  // ignored if the parent process ignores them (nohup).
  StopRequests();
  ~StopRequests();  // the former meaning comes back
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;
  int descriptor() const { return fd_; }  // readable when there is a new one
  // Requests so far. SIGHUP and SIGPIPE come repeatedly and count as the first one only.
  int count();
  int first() const { return first_; }  // the signal; 0: none yet

 private:
  int fd_ = -1, asked_ = 0, first_ = 0;
  sigset_t former_;
};

}  // namespace megalith::launch
