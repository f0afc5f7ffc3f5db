// Measurements of this machine, by name, kept in the user's cache folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "memory/machine.h"

namespace megalith {

// Returns the file of measurements, in $XDG_CACHE_HOME/megalith or ~/.cache/megalith; empty if there is no home.
std::filesystem::path calibration_file();

class Measurements {
 public:
  // Measurements of this processor with `threads` threads. If `may_measure` is false, get() returns 1 for a measurement that
  // is missing. `core_waits` returns the total seconds that threads have waited for cores.
  Measurements(int64_t threads, bool may_measure, std::function<double()> core_waits = processor_wait_seconds);

  ~Measurements();
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  // Returns the measurement `name`. Measures it if it is missing.
  double get(const std::string& name, const std::function<double()>& measure);
  // Returns the measurement `name`, or nothing if it is missing or must be repeated.
  std::optional<double> find(const std::string& name) const;
  // For several numbers from one measurement. `watch` observes how busy the cores are during it; `set` keeps one number.
  void watch(const std::function<void()>& measure);
  void set(const std::string& name, double value);

  bool complete() const { return complete_; }  // nothing was missing
  // Returns a warning for the user if a requested measurement was made while other work used the cores, else an empty text.
  std::string warning() const;
  // Saves new measurements. If they were made while other work used the cores, they are not typical of the machine: the log
  // says so, and they are repeated after ten minutes. If the cache file cannot be written, the run continues.
  void save();

 private:
  int64_t threads_;
  std::string machine_;
  std::filesystem::path path_;
  std::function<double()> core_waits_;
  std::unique_ptr<nlohmann::json> all_;  // an object, by machine and then by name
  std::vector<std::string> made_;  // names of new measurements
  double watched_ = 0;             // seconds that the new measurements took
  double waited_ = 0;              // seconds in watched_ in which a thread waited for a core, on average
  double busiest_ = 0;             // largest share of time that a thread waited, of all measurements from get()
  bool may_measure_ = true, complete_ = true;
};

}  // namespace megalith
