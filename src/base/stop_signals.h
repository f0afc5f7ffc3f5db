// Signals that ask the program to stop at the next good place: Ctrl-C, SIGTERM, a closed terminal (SIGHUP), and output
// without a reader (SIGPIPE). A second Ctrl-C or SIGTERM ends the process at once.
#pragma once
#include <string>

namespace megalith {

// Says how signals are handled when the work is done. With several ranks, a rank that is done ignores them. Other ranks may
// still be saving, and a signal to all ranks must not kill the first rank that is done.
enum class AfterStop { restore, ignore };

class StopSignals {
 public:
  // Installs the handlers, but leaves SIGHUP and SIGPIPE ignored if the parent process ignores them (nohup).
  // `message` is what the first signal prints. It must live as long as this.
  explicit StopSignals(const char* message, AfterStop after = AfterStop::restore);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool stop_requested() const;
  std::string signal() const;  // the first one ("SIGTERM"); empty: none came

 private:
  AfterStop after_;
};

// "SIGTERM" for SIGTERM.
std::string signal_name(int signal);

// True if this process ignores the signal. A process inherits this from its parent.
bool is_ignored(int signal);

}  // namespace megalith
