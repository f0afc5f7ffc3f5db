// Makes a curve small enough to embed: many thousands of steps become a limited number of buckets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace megalith {

struct Point {
  int64_t x;
  double y;  // points with a non-finite y are ignored
};

// Returns {"x": [...], "mean": [...], "min": [...], "max": [...]}. Buckets have equal numbers of points; x is that of
// the middle point. If there are no more points than buckets, returns the points without "min" and "max".
nlohmann::json bucketed(const std::vector<Point>& points, size_t buckets);

}  // namespace megalith
