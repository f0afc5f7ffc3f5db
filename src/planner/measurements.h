// What was measured of this machine, by name, kept in the user's cache folder.
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

// Where measurements are kept: $XDG_CACHE_HOME/megalith, ~/.cache/megalith or, without a home, nowhere.
std::filesystem::path calibration_file();

class Measurements {
 public:
  // Of this processor with so many threads. Without leave to measure, what is missing is 1. `core_waits` tells the seconds
  // that threads have waited for cores so far.
  Measurements(int64_t threads, bool may_measure, std::function<double()> core_waits = processor_wait_seconds);

  ~Measurements();
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  // The measurement of that name, made now if there is none.
  double get(const std::string& name, const std::function<double()>& measure);
  // The measurement of that name, if there is one that need not be made again.
  std::optional<double> find(const std::string& name) const;
  // Of several numbers from one go: watches how busy the cores are while they are measured, and keeps them one by one.
  void watch(const std::function<void()>& measure);
  void set(const std::string& name, double value);

  bool complete() const { return complete_; }  // nothing was missing
  // What to tell the user if any measurement that was asked for was made while other work held the cores. Else empty.
  std::string warning() const;
  // Keeps what was made. What was made while other work held the cores says more about that moment than about the machine:
  // it is said so, and after ten minutes it is made again. A cache that cannot be written is no reason to stop.
  void save();

 private:
  int64_t threads_;
  std::string machine_;
  std::filesystem::path path_;
  std::function<double()> core_waits_;
  std::unique_ptr<nlohmann::json> all_;  // an object, by machine and then by name
  std::vector<std::string> made_;  // names, in this go
  double watched_ = 0;             // seconds that they took
  double waited_ = 0;              // and that a thread stood ready without a core meanwhile, on average
  double busiest_ = 0;             // the share of its time that a thread waited in the busiest of what get() gave
  bool may_measure_ = true, complete_ = true;
};

}  // namespace megalith
