#include "commands/run_text.h"

#include <fmt/format.h>

#include "families/block_spec.h"
#include "families/family.h"

namespace megalith {

std::string model_line(const Run& run) {
  return fmt::format("{}, {} parameters", run.shape.family->name, show_count(parameter_count(run.shape)));
}

std::string step_line(const PlanInput& input, int64_t micro_batch) {
  const int32_t micros = input.micros_of(micro_batch);
  return fmt::format("{} tokens per step in {}", input.batch * input.sequence,
                     micros == 1 ? "one micro-batch" : fmt::format("{} micro-batches", micros));
}

std::string lines(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

std::string shape_lines(std::span<const ShapeForecast> shapes, bool with_seconds) {
  if (shapes.empty()) return "";
  return fmt::format("These are the largest steps. The first step, the last step and some in between:\n{}\n",
                     show(shapes, with_seconds));
}

}  // namespace megalith
