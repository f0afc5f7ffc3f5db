#include "data/pacing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace megalith {

double Pacing::at(int64_t progress) const {
  const PacingSettings& s = settings_;
  if (!s.table.empty()) {
    auto after = std::ranges::upper_bound(s.table, progress, {}, &PacingSettings::Point::begin);
    return after == s.table.begin() ? s.table.front().value : std::prev(after)->value;
  }
  if (progress >= s.over) return s.to;
  const double done = static_cast<double>(progress) / static_cast<double>(s.over);
  double value = s.from + (s.to - s.from) * std::pow(done, 1 / s.root);
  // 0.3 / 0.1 is slightly less than 3, but must count as 3 steps.
  constexpr double kRoundings = 2 * std::numeric_limits<double>::epsilon();
  if (s.step > 0) {
    const double steps = value / s.step;
    value = std::floor(steps + std::abs(steps) * kRoundings) * s.step;
  }
  return std::clamp(value, s.from, s.to);
}

}  // namespace megalith
