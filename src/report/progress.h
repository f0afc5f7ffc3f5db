// What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "report/live_line.h"
#include "report/metrics.h"

namespace megalith {

// The numbers of the line.
struct ProgressView {
  int64_t step = 0, steps = 0;
  double loss = 0;                   // smoothed
  std::optional<double> valid_loss;  // the last one
  double tokens_per_s = 0;
  double seconds_left = -1;          // < 0: not known yet, or at the end
  int64_t memory_bytes = 0, budget_bytes = 0;  // budget 0: none
  int64_t skipped = 0;
};

// One line without control codes for position. The bar shrinks first, then the least needed numbers go.
std::string render_progress(const ProgressView& view, const LineStyle& style);

class Progress {
 public:
  struct Options {
    int64_t steps = 0;
    int64_t first_step = 0;      // steps done before this process (resume)
    int64_t log_every = 1;       // plain output: steps between lines
    int64_t budget_bytes = 0;
    std::function<double(int64_t)> work_before;    // a step, in what takes time alike; default: steps
    std::FILE* out = stderr;
    std::optional<bool> terminal;                  // default: whether `out` is one (and TERM is not "dumb")
    std::function<double()> clock;                 // seconds; default: steady clock
    std::function<void(std::string_view)> record;  // gets the plain lines, also where `out` is a terminal; default: none
  };
  explicit Progress(Options options);

  void step(const StepMetrics& metrics);
  // A line of other output: printed above the live line, which follows it.
  void note(std::string_view line);
  // Removes the live line until the next step, for output that goes around this class. Log messages need no
  // call: they clear the line themselves.
  void clear() { line_.clear(); }
  bool terminal() const { return line_.terminal(); }

 private:
  void draw(double now, bool at_once);

  Options options_;
  LiveLine line_;
  ProgressView view_;
  double began_;
  double smoothing_weight_ = 0;     // sum of weights behind view_.loss
};

}  // namespace megalith
