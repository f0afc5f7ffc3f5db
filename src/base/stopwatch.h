// Measures durations, and takes the median of several.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace megalith {

class Stopwatch {
 public:
  double seconds() const {  // since construction
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

inline double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

// Needs at least one value. If the number of values is even, returns the larger of the two middle values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace megalith
