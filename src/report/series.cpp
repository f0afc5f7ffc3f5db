#include "report/series.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace megalith {
namespace {

// Six digits are more than a screen shows, and keep the file small.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

nlohmann::json bucketed(const std::vector<Point>& points, size_t buckets) {
  std::vector<Point> finite;
  std::copy_if(points.begin(), points.end(), std::back_inserter(finite),
               [](const Point& p) { return std::isfinite(p.y); });
  const size_t n = finite.size(), count = std::min(n, buckets);
  nlohmann::json x = nlohmann::json::array(), mean = x, least = x, most = x;
  for (size_t b = 0; b < count; b++) {
    size_t from = n * b / count, to = n * (b + 1) / count;
    double low = finite[from].y, high = low, sum = 0;
    for (size_t i = from; i < to; i++) {
      low = std::min(low, finite[i].y);
      high = std::max(high, finite[i].y);
      sum += finite[i].y;
    }
    x.push_back(finite[(from + to - 1) / 2].x);
    mean.push_back(rounded(sum / static_cast<double>(to - from)));
    least.push_back(rounded(low));
    most.push_back(rounded(high));
  }
  nlohmann::json curve{{"x", x}, {"mean", mean}};
  if (n > count) curve.update({{"min", least}, {"max", most}});
  return curve;
}

}  // namespace megalith
