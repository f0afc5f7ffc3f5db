// Ctrl-C and SIGTERM: the first asks the work to stop at a good place, the second ends the process at once.
#pragma once

namespace megalith {

class StopSignals {
 public:
  // Installs the handlers. `message` is what the first signal prints; it must live as long as this.
  explicit StopSignals(const char* message);
  ~StopSignals();  // puts the former ones back
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool stop_requested() const;
};

}  // namespace megalith
