// A curve small enough to embed: many thousands of steps become at most so many buckets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace megalith {

struct Point {
  int64_t x;
  double y;  // non-finite points are left out of every bucket
};

// {"x": [...], "mean": [...], "min": [...], "max": [...]}: equal numbers of points a bucket, x the middle
// one's. With no more points than buckets the curve is the points, and "min" and "max" are left out.
nlohmann::json bucketed(const std::vector<Point>& points, size_t buckets);

}  // namespace megalith
