#include "train/prepare_curriculum.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/deepspeed_index.h"
#include "data/metric_file.h"
#include "train/analyze.h"

namespace megalith {

void check_metric_files(const Config& config) {
  for (size_t i = 0; i < config.curriculum.size(); i++)
    if (const std::string& file = config.curriculum[i].file;
        !file.empty() && !std::filesystem::exists(file) && !is_deepspeed_index(file))
      throw UserError({file, fmt::format("curriculum[{}].file", i), "a file", "nothing of that name",
                       fmt::format("the current folder is {}", std::filesystem::current_path().string())});
}

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
