// The content of the live line of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"
#include "report/progress.h"

namespace megalith {
namespace {

std::string show_loss(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : std::string("not finite");
}

std::string show_rate(double tokens_per_s) {
  return show_count(std::llround(std::clamp(tokens_per_s, 0.0, 1e15))) + " tok/s";
}

// Returns "1.20/4.00 GiB", or both units if they differ.
std::string show_memory(const ProgressView& view) {
  std::string used = show(Bytes(view.memory_bytes)), budget = show(Bytes(view.budget_bytes));
  if (view.budget_bytes <= 0) return used;
  size_t unit = used.find(' ');
  if (used.substr(unit) == budget.substr(budget.find(' '))) used.resize(unit);
  return used + "/" + budget;
}

std::vector<LineField> fields_of(const ProgressView& view) {
  std::string steps = fmt::format("{}", view.steps);
  std::vector<LineField> fields;
  fields.push_back({fmt::format("step {:>{}}/{}", view.step, steps.size(), steps), Ink::plain, 0});
  if (view.step > 0) fields.push_back({"loss " + show_loss(view.loss), Ink::plain, 1});
  if (view.valid_loss) fields.push_back({"valid " + show_loss(*view.valid_loss), Ink::plain, 6});
  if (view.step > 0) fields.push_back({show_rate(view.tokens_per_s), Ink::plain, 3});
  if (view.seconds_left >= 0) fields.push_back({show_left(view.seconds_left), Ink::plain, 2});
  if (view.memory_bytes > 0) {
    bool tight = view.budget_bytes > 0 && view.memory_bytes > view.budget_bytes;
    fields.push_back({show_memory(view), tight ? Ink::warning : Ink::dim, 4});
  }
  if (view.skipped > 0) fields.push_back({fmt::format("{} skipped", view.skipped), Ink::warning, 5});
  return fields;
}

}  // namespace

std::string render_progress(const ProgressView& view, const LineStyle& style) {
  const double done = view.steps > 0 ? static_cast<double>(view.step) / static_cast<double>(view.steps) : 0;
  return compose_line(done, fields_of(view), style);
}

}  // namespace megalith
