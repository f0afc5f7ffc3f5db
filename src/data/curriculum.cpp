#include "data/curriculum.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/join.h"

namespace megalith {
namespace {

class Admission {
 public:
  Admission(const Filter& filter, const StepShapes& progress)
      : pacing_(filter.settings.pacing),
        percentile_(filter.settings.unit == DifficultyUnit::percentile),
        progress_(progress) {
    while (progress_.before(last_, pacing_.unit()) < pacing_.settled()) last_ = std::max<int64_t>(1, 2 * last_);
  }

  // Returns the first step, not before `earliest`, at which the limit admits a value, or kNever.
  int64_t step_of(double value, int64_t earliest) const {
    if (admits(earliest, value)) return earliest;
    int64_t refused = earliest, admitted = std::max(last_, earliest);
    if (!admits(admitted, value)) return kNever;
    while (admitted - refused > 1) {
      const int64_t middle = refused + (admitted - refused) / 2;
      (admits(middle, value) ? admitted : refused) = middle;
    }
    return admitted;
  }

 private:
  // With percentiles, `value` is the percentage of samples that come before this sample. It must be below the limit: of 50
  // samples, a limit of 2% admits one, not two.
  bool admits(int64_t step, double value) const {
    const double limit = pacing_.at(progress_.before(step, pacing_.unit()));
    return percentile_ ? value < limit : value <= limit;
  }

  Pacing pacing_;
  bool percentile_;
  const StepShapes& progress_;
  int64_t last_ = 0;  // the pacing is constant from this step on
};

void raise(std::vector<int64_t>& steps, const Filter& filter, int64_t begin, const StepShapes& progress) {
  const Admission admission(filter, progress);
  std::span<const double> values = std::span(filter.values).subspan(static_cast<size_t>(begin), steps.size());
  std::vector<int64_t> easiest_first(steps.size());
  std::iota(easiest_first.begin(), easiest_first.end(), int64_t{0});
  std::ranges::stable_sort(easiest_first, {}, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  int64_t step = 0;
  for (size_t rank = 0; rank < easiest_first.size(); rank++) {
    const auto sample = static_cast<size_t>(easiest_first[rank]);
    const double value = filter.settings.unit == DifficultyUnit::percentile
                             ? 100.0 * static_cast<double>(rank) / static_cast<double>(steps.size())
                             : values[sample];
    if (step != kNever) step = admission.step_of(value, step);
    steps[sample] = std::max(steps[sample], step);
  }
}

// Reports the filter that admits none of these samples at the first step. If each filter admits some, reports all
// filters.
[[noreturn]] void refuse_nothing(std::span<const Filter> filters, int64_t begin, int64_t count, const StepShapes& progress,
                                 const std::string& where) {
  for (const Filter& filter : filters) {
    std::vector<int64_t> steps(static_cast<size_t>(count), 0);
    raise(steps, filter, begin, progress);
    if (std::ranges::find(steps, 0) != steps.end()) continue;
    const auto values = std::span(filter.values).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    throw UserError({where, "curriculum",
                     fmt::format("at least one sample that the first step admits ({}, from: {})", filter.settings.metric,
                                 filter.settings.pacing.from),
                     fmt::format("none of {}; the easiest has {} {}", count, filter.settings.metric,
                                 *std::ranges::min_element(values)),
                     "raise `from`, or use unit: percentile"});
  }
  std::vector<std::string> limits;
  for (const Filter& filter : filters)
    limits.push_back(fmt::format("{} from: {}", filter.settings.metric, filter.settings.pacing.from));
  throw UserError({where, "curriculum", "at least one sample that every filter admits at the first step",
                   fmt::format("none of {} samples ({})", count, some_of(limits)),
                   "raise `from` of one of these filters"});
}

}  // namespace

std::string limit_name(std::span<const CurriculumSettings> curriculum, const CurriculumSettings& entry) {
  const auto named_so = std::ranges::count(curriculum, entry.metric, &CurriculumSettings::metric);
  if (named_so == 1 || entry.changes_length()) return entry.metric;
  int64_t number = 1;  // number among the filters of this metric
  for (const CurriculumSettings* before = curriculum.data(); before != &entry; before++)
    number += before->metric == entry.metric && !before->changes_length();
  return number == 1 ? entry.metric + " filter" : fmt::format("{} filter {}", entry.metric, number);
}

std::vector<int64_t> admission_steps(std::span<const Filter> filters, int64_t begin, int64_t count,
                                     const StepShapes& progress, const std::string& where) {
  std::vector<int64_t> steps(static_cast<size_t>(count), 0);
  for (const Filter& filter : filters) raise(steps, filter, begin, progress);
  if (std::ranges::find(steps, 0) == steps.end()) refuse_nothing(filters, begin, count, progress, where);
  return steps;
}

}  // namespace megalith
