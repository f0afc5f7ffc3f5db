#include "data/pacing.h"

#include <algorithm>
#include <cmath>

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
  if (s.step > 0) value = std::floor(value / s.step) * s.step;
  return std::clamp(value, s.from, s.to);
}

}  // namespace megalith
