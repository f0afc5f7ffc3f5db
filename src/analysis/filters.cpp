#include "analysis/filters.h"

#include "analysis/difficulties.h"
#include "run/loss_record.h"

namespace megalith {

std::vector<Filter> prepare_filters(const Run& run, const RunDirectory& directory, const Dataset& data, bool begun) {
  const LossRecord record = begun ? read_loss_record(directory.path()) : LossRecord();
  LossRecord used;
  Difficulties difficulties(run, directory, data);
  std::vector<Filter> filters;
  for (const CurriculumSettings& entry : run.config.curriculum) {
    if (entry.changes_length()) continue;
    const DifficultyRequest request = request_in_run(entry, record, directory.path());
    MetricValues found = difficulties.of(request);
    if (request.of_model()) used[request.checkpoint] = found.path.filename().string();
    filters.push_back({entry, std::move(found.values)});
  }
  if (used != record) write_loss_record(directory.path(), used);
  return filters;
}

}  // namespace megalith
