// Computes at which step a curriculum with filters admits each sample.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/step_shapes.h"

namespace megalith {

// A metric with one value per training sample, and how its limit grows.
struct Filter {
  CurriculumSettings settings;
  std::vector<double> values;  // finite
};

// The step of samples that are never admitted.
inline constexpr int64_t kNever = INT64_MAX;

// The name of an entry's limit in metrics and messages. It is the entry's metric, except for a filter whose metric
// another entry also has. Such a filter is called "METRIC filter", with a number from the second on.
std::string limit_name(std::span<const CurriculumSettings> curriculum, const CurriculumSettings& entry);

// Returns the first step at which all filters admit each of the samples [begin, begin + count). Percentiles are computed
// among these samples. For equal values, the sample with the lower number comes first. Throws UserError if the first
// step admits no sample; `where` names the samples in the error.
std::vector<int64_t> admission_steps(std::span<const Filter> filters, int64_t begin, int64_t count,
                                     const StepShapes& progress, const std::string& where = "");

}  // namespace megalith
