#include "train/expert_metrics.h"

#include <algorithm>

namespace megalith {

std::optional<ExpertMetrics> expert_metrics(const RoutingRecord& record) {
  double tokens = 0, choices = 0, dropped = 0;
  ExpertMetrics m;
  for (const LayerRouting& layer : record) {
    if (layer.tokens == 0) continue;
    tokens += static_cast<double>(layer.tokens);
    choices += static_cast<double>(layer.choices);
    dropped += static_cast<double>(layer.dropped);
    m.aux += layer.aux;
    m.z += layer.z;
    double sum = 0;
    for (int64_t load : layer.load) sum += static_cast<double>(load);
    const auto most = static_cast<double>(*std::max_element(layer.load.begin(), layer.load.end()));
    if (sum > 0) m.load = std::max(m.load, most * static_cast<double>(layer.load.size()) / sum);
  }
  if (tokens == 0) return std::nullopt;
  m.aux /= tokens;
  m.z /= tokens;
  m.dropped = dropped / choices;
  return m;
}

}  // namespace megalith
