// Ctrl-C and SIGTERM: the first asks the run to stop after its step, the second ends the process at once.
#pragma once

namespace megalith {

class StopSignals {
 public:
  StopSignals();   // installs the handlers
  ~StopSignals();  // puts the former ones back
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool stop_requested() const;
};

}  // namespace megalith
