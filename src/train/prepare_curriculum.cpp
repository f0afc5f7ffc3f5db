#include "train/prepare_curriculum.h"

#include "data/metric_file.h"
#include "train/analyze.h"

namespace megalith {

std::vector<Filter> prepare_filters(const Config& config, const RunDirectory& run, const Dataset& data) {
  std::vector<Filter> filters;
  for (const CurriculumSettings& entry : config.curriculum) {
    if (entry.changes_length()) continue;
    filters.push_back({entry, entry.file.empty()
                                  ? metric_of({entry.metric, entry.checkpoint}, config, run, data)
                                  : read_metric(entry.file, {entry.metric, data.samples(), data.fingerprint()})});
  }
  return filters;
}

}  // namespace megalith
