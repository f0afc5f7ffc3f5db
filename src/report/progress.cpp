#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace megalith {
namespace {

constexpr double kSmoothing = 0.95;      // weight of the past in the loss shown

std::string plain_line(const ProgressView& view, const StepMetrics& m) {
  std::string line = fmt::format("step {}/{}", view.step, view.steps);
  if (m.skipped)
    line += fmt::format("  skipped: loss {}, gradient norm {}", m.loss, m.grad_norm);
  else
    line += fmt::format("  loss {:.4f}", m.loss);
  if (m.valid_loss) line += fmt::format("  valid {:.4f}", *m.valid_loss);
  line += fmt::format("  lr {:.3g}  grad {:.3g}  {} tok/s", m.lr, m.grad_norm,
                      show_count(std::llround(std::fmin(std::fmax(m.tokens_per_s, 0), 1e15))));
  if (m.mem_peak_bytes > 0) line += "  " + show(Bytes(m.mem_peak_bytes));
  if (m.mem_peak_bytes > 0 && view.budget_bytes > 0) line += " of " + show(Bytes(view.budget_bytes));
  if (view.seconds_left >= 0) line += "  " + show_left(view.seconds_left);
  return line;
}

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)), line_(options_.out, options_.terminal) {
  if (!options_.clock) options_.clock = steady_seconds;
  if (!options_.work_before) options_.work_before = [](int64_t step) { return static_cast<double>(step); };
  view_.step = options_.first_step;
  view_.loss = std::nan("");
  view_.steps = options_.steps;
  view_.budget_bytes = options_.budget_bytes;
  began_ = options_.clock();
}

void Progress::note(std::string_view line) {
  line_.print(line);
  if (line_.terminal() && view_.step > options_.first_step) draw(options_.clock(), true);
}

void Progress::draw(double now, bool at_once) {
  line_.draw([&](const LineStyle& style) { return render_progress(view_, style); }, now, at_once);
}

void Progress::step(const StepMetrics& metrics) {
  double now = options_.clock();
  view_.step = metrics.step;
  view_.tokens_per_s = metrics.tokens_per_s;
  view_.memory_bytes = metrics.mem_peak_bytes;
  if (metrics.valid_loss) view_.valid_loss = metrics.valid_loss;
  if (metrics.skipped) {
    view_.skipped++;
  } else if (std::isfinite(metrics.loss)) {
    // Mean with decaying weights; without the division the first losses would be drawn towards zero.
    double past = smoothing_weight_ * kSmoothing;
    smoothing_weight_ = past + 1;
    view_.loss = past > 0 ? view_.loss + (metrics.loss - view_.loss) / smoothing_weight_ : metrics.loss;
  }
  // Wall-clock time of this process, so that validations and saves count as they come.
  const double done = options_.work_before(view_.step) - options_.work_before(options_.first_step);
  const double left = options_.work_before(view_.steps) - options_.work_before(view_.step);
  bool last = view_.step >= view_.steps;
  if (done > 0) view_.seconds_left = last ? -1 : (now - began_) / done * left;
  bool due = view_.step % std::max<int64_t>(options_.log_every, 1) == 0;
  if (line_.terminal())
    draw(now, last);
  else if (due || last || metrics.skipped || metrics.valid_loss)
    line_.print(plain_line(view_, metrics));
}

}  // namespace megalith
