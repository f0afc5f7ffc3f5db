#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace megalith {
namespace {

constexpr double kSmoothing = 0.95;      // weight of earlier steps in the smoothed loss

std::string shown(const MetricRow& row, double value, int64_t budget_bytes) {
  switch (row.unit) {
    case MetricUnit::nats: return fmt::format("{} {:.4f}", row.line, value);
    case MetricUnit::tokens_per_s:
      return fmt::format("{} {}", show_count(std::llround(std::fmin(std::fmax(value, 0), 1e15))), row.line);
    case MetricUnit::bytes:
      return show(Bytes(std::llround(value))) + (budget_bytes > 0 ? " of " + show(Bytes(budget_bytes)) : "");
    default: return fmt::format("{} {:.3g}", row.line, value);
  }
}

std::string plain_line(const ProgressView& view, const StepMetrics& m) {
  std::string line = fmt::format("step {}/{}", view.step, view.steps);
  if (m.skipped)
    line += fmt::format("  skipped: loss {}, gradient norm {}", m.get(MetricId::loss), m.get(MetricId::grad_norm));
  for (const auto& group : metrics_by_chart())
    for (const MetricRow* row : group)
      if (!row->line.empty() && m[row->id] && !(m.skipped && row->id == MetricId::loss))
        line += "  " + shown(*row, *m[row->id], row->id == MetricId::mem_peak_bytes ? view.budget_bytes : 0);
  if (view.seconds_left >= 0) line += "  " + show_left(view.seconds_left);
  return line;
}

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)), line_(options_.out, options_.terminal) {
  if (!options_.clock) options_.clock = steady_seconds;
  if (!options_.work_before) options_.work_before = [](int64_t step) { return static_cast<double>(step); };
  if (!options_.record) options_.record = [](std::string_view) {};
  view_.step = options_.first_step;
  view_.loss = std::nan("");
  view_.steps = options_.steps;
  view_.budget_bytes = options_.budget_bytes;
  began_ = options_.clock();
}

void Progress::note(std::string_view line) {
  line_.print(line);
  options_.record(line);
  if (line_.terminal() && view_.step > options_.first_step) draw(options_.clock(), true);
}

void Progress::draw(double now, bool at_once) {
  line_.draw([&](const LineStyle& style) { return render_progress(view_, style); }, now, at_once);
}

void Progress::step(const StepMetrics& metrics) {
  double now = options_.clock();
  view_.step = metrics.step;
  view_.tokens_per_s = metrics[MetricId::tokens_per_s].value_or(0);
  view_.memory_bytes = std::llround(metrics[MetricId::mem_peak_bytes].value_or(0));
  if (metrics[MetricId::valid_loss]) view_.valid_loss = metrics[MetricId::valid_loss];
  const double loss = metrics.get(MetricId::loss);
  if (metrics.skipped) {
    view_.skipped++;
  } else if (std::isfinite(loss)) {
    // A mean with decaying weights. The division by their sum avoids a bias of the first losses towards zero.
    double past = smoothing_weight_ * kSmoothing;
    smoothing_weight_ = past + 1;
    view_.loss = past > 0 ? view_.loss + (loss - view_.loss) / smoothing_weight_ : loss;
  }
  // Wall-clock time of this process, so that it includes validations and saves.
  const double done = options_.work_before(view_.step) - options_.work_before(options_.first_step);
  const double left = options_.work_before(view_.steps) - options_.work_before(view_.step);
  bool last = view_.step >= view_.steps;
  if (done > 0) view_.seconds_left = last ? -1 : (now - began_) / done * left;
  bool due = view_.step % std::max<int64_t>(options_.log_every, 1) == 0;
  if (line_.terminal()) draw(now, last);
  if (!due && !last && !metrics.skipped && !metrics[MetricId::valid_loss]) return;
  const std::string line = plain_line(view_, metrics);
  if (!line_.terminal()) line_.print(line);
  options_.record(line);
}

}  // namespace megalith
