// When a curriculum that filters admits each sample.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/step_shapes.h"

namespace megalith {

// A metric with one value a training sample, and how its limit grows.
struct Filter {
  CurriculumSettings settings;
  std::vector<double> values;  // finite
};

// Samples that no step admits.
inline constexpr int64_t kNever = INT64_MAX;

// What an entry's limit is called where limits are told: its metric, but for filters whose metric another entry has, too,
// which say so and are numbered.
std::string limit_name(std::span<const CurriculumSettings> curriculum, const CurriculumSettings& entry);

// The first step at which all filters admit each of the samples [begin, begin + count). Percentiles are those among
// these samples; where values are equal, the sample with the lower number comes first. UserError where the first step
// admits none; `where` names the samples in it.
std::vector<int64_t> admission_steps(std::span<const Filter> filters, int64_t begin, int64_t count,
                                     const StepShapes& progress, const std::string& where = "");

}  // namespace megalith
