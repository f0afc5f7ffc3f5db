// Ctrl-C, SIGTERM and a closed terminal as something to poll: while this exists they end nothing by themselves.
#pragma once
#include <csignal>

namespace megalith::launch {

class StopRequests {
 public:
  StopRequests();
  ~StopRequests();  // the former meaning comes back
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;
  int descriptor() const { return fd_; }  // readable when there is a new one
  int count();                            // so far

 private:
  int fd_ = -1, count_ = 0;
  sigset_t former_;
};

}  // namespace megalith::launch
