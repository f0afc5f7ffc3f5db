#include "train/prepare_curriculum.h"

#include <fmt/format.h>

#include "train/analyze.h"

namespace megalith {
namespace {

AnalysisRequest request_of(const CurriculumSettings& entry) { return {entry.metric, entry.checkpoint, entry.file}; }

}  // namespace

void check_curriculum(const Config& config) {
  for (size_t i = 0; i < config.curriculum.size(); i++)
    if (!config.curriculum[i].changes_length())
      check_request(request_of(config.curriculum[i]), fmt::format("curriculum[{}]", i), config.run.dir);
}

std::vector<Filter> prepare_filters(const Config& config, const RunDirectory& run, const Dataset& data, bool goes_on) {
  std::vector<Filter> filters;
  for (const CurriculumSettings& entry : config.curriculum)
    if (!entry.changes_length())
      filters.push_back({entry, metric_of(request_of(entry), config, run, data, goes_on).values});
  return filters;
}

}  // namespace megalith
