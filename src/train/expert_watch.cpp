#include "train/expert_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/log.h"

namespace megalith {
namespace {

// Returns the tokens of each expert, divided by the mean.
std::vector<double> evenness(const std::vector<int64_t>& load) {
  const auto sum = static_cast<double>(std::accumulate(load.begin(), load.end(), int64_t{0}));
  std::vector<double> out;
  for (int64_t of_one : load)
    out.push_back(sum > 0 ? static_cast<double>(of_one) * static_cast<double>(load.size()) / sum : 1);
  return out;
}

double in_three_decimals(double x) { return std::round(x * 1000) / 1000; }  // enough for people and plots

}  // namespace

void ExpertWatch::see(const RoutingRecord& record, StepMetrics& metrics) {
  double tokens = 0, choices = 0, dropped = 0, aux = 0, z = 0, entropy = 0, busiest = 1;
  for (size_t layer = 0; layer < record.size(); layer++) {
    const LayerRouting& routing = record[layer];
    if (routing.tokens == 0) continue;
    tokens += static_cast<double>(routing.tokens);
    choices += static_cast<double>(routing.choices);
    dropped += static_cast<double>(routing.dropped);
    aux += routing.aux;
    z += routing.z;
    entropy += routing.entropy;
    const std::vector<double> load = evenness(routing.load);
    busiest = std::max(busiest, *std::max_element(load.begin(), load.end()));
    feed(static_cast<int64_t>(layer), routing);
  }
  if (tokens == 0) return;
  metrics[MetricId::expert_aux] = aux / tokens;
  metrics[MetricId::expert_z] = z / tokens;
  metrics[MetricId::expert_dropped] = dropped / choices;
  metrics[MetricId::expert_load] = busiest;
  metrics[MetricId::expert_entropy] = entropy / tokens;
  if (++seen_ == every_) metrics.expert_layers = mean_loads();
}

void ExpertWatch::feed(int64_t layer, const LayerRouting& routing) {
  LayerRouting& sum = sums_[layer];
  sum.tokens += routing.tokens;
  sum.choices += routing.choices;
  sum.dropped += routing.dropped;
  sum.entropy += routing.entropy;
  sum.load.resize(routing.load.size());
  for (size_t e = 0; e < routing.load.size(); e++) sum.load[e] += routing.load[e];

  constexpr int64_t kWarned = std::numeric_limits<int64_t>::max();
  const std::vector<double> load = evenness(routing.load);
  for (size_t e = 0; e < load.size(); e++) {
    int64_t& steps = starving_[{layer, e}];
    if (steps == kWarned) continue;
    steps = load[e] < kStarving ? steps + 1 : 0;
    if (steps < kLong) continue;
    steps = kWarned;
    log::warn("layer {}: expert {} has received less than {:.0f}% of the mean number of tokens for {} steps, so it learns little; "
              "raise model.experts.aux_loss, or use router: sigmoid, which balances the loads with a bias",
              layer, e, 100 * kStarving, kLong);
  }
}

std::vector<ExpertLoads> ExpertWatch::mean_loads() {
  std::vector<ExpertLoads> out;
  for (const auto& [layer, sum] : sums_) {
    ExpertLoads& loads = out.emplace_back(layer, evenness(sum.load));
    for (double& load : loads.load) load = in_three_decimals(load);
    loads.dropped = static_cast<double>(sum.dropped) / static_cast<double>(sum.choices);
    loads.entropy = sum.entropy / static_cast<double>(sum.tokens);
  }
  sums_.clear();
  seen_ = 0;
  return out;
}

}  // namespace megalith
