#include "planner/shape_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/shape_plans.h"

namespace megalith {
namespace {

constexpr size_t kShown = 6;  // maximum number; each needs a plan, which takes a moment for a large model

}  // namespace

std::vector<ShapeForecast> forecast_shapes(const PlanInput& input, const Plan& plan, const StepShapes& shapes,
                                           int64_t steps) {
  const auto changes = shapes.changes(steps);
  ShapePlans plans(input, plan);
  if (changes.size() == 1 && &plans.at(changes.front().second) == &plan) return {};
  std::vector<ShapeForecast> forecast;
  const size_t shown = std::min(kShown, changes.size());
  for (size_t i = 0; i < shown; i++) {
    const auto& [first_step, shape] = changes[shown == 1 ? 0 : i * (changes.size() - 1) / (shown - 1)];
    const Plan& of_shape = plans.at(shape);
    forecast.push_back({first_step, shape, of_shape.predicted.seconds, of_shape.predicted_peak()});
  }
  return forecast;
}

std::string show(std::span<const ShapeForecast> shapes, bool with_seconds) {
  if (shapes.empty()) return "";
  std::string text = fmt::format("{:>10} {:>10} {:>8} {:>8} {:>12}{}\n", "from step", "sequences", "length", "kept",
                                 "peak memory", with_seconds ? fmt::format(" {:>10}", "step time") : "");
  for (const ShapeForecast& at : shapes)
    text += fmt::format("{:>10} {:>10} {:>8} {:>8} {:>12}{}\n", at.first_step + 1, at.shape.sequences(), at.shape.length,
                        at.shape.processed(), show(at.peak),
                        with_seconds ? fmt::format(" {:>10}", show_seconds(at.seconds)) : "");
  return text;
}

nlohmann::json to_json(std::span<const ShapeForecast> shapes) {
  nlohmann::json list = nlohmann::json::array();
  for (const ShapeForecast& at : shapes)
    list.push_back({{"first_step", at.first_step + 1},
                    {"sequences", at.shape.sequences()},
                    {"length", at.shape.length},
                    {"kept", at.shape.processed()},
                    {"step_s", at.seconds},
                    {"peak_bytes", at.peak.value}});
  return list;
}

}  // namespace megalith
