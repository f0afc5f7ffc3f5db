// Watches routers during a run. Adds a few numbers to the metrics of every step and, at intervals, the loads of all experts.
// Warns if an expert starves.
#pragma once
#include <algorithm>
#include <map>
#include <utility>

#include "model/routing/record.h"
#include "report/metrics.h"

namespace megalith {

class ExpertWatch {
 public:
  static constexpr int64_t kRecords = 200;      // records per run that have all loads
  static constexpr double kStarving = 0.1;      // an expert with less than this part of the mean load starves
  static constexpr int64_t kLong = 100;         // steps in a row

  explicit ExpertWatch(int64_t steps) : every_(std::max<int64_t>(1, steps / kRecords)) {}

  // Adds a step's numbers to `metrics`, if a layer has experts. Warns of experts that have starved for long, once each.
  void see(const RoutingRecord& record, StepMetrics& metrics);

 private:
  void feed(int64_t layer, const LayerRouting& routing);
  std::vector<ExpertLoads> mean_loads();  // mean loads since the last call

  int64_t every_;
  int64_t seen_ = 0;                                        // steps since the last call of mean_loads()
  std::map<int64_t, LayerRouting> sums_;                    // by layer, over these steps
  std::map<std::pair<int64_t, size_t>, int64_t>
      starving_;  // by layer and expert: steps in a row; the largest int64_t after a warning
};

}  // namespace megalith
