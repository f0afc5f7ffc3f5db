// Progress of a run for the user: one live line on a terminal, plain lines elsewhere.
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

// The numbers of the progress line.
struct ProgressView {
  int64_t step = 0, steps = 0;
  double loss = 0;                   // smoothed
  std::optional<double> valid_loss;  // of the last validation
  double tokens_per_s = 0;
  double seconds_left = -1;          // < 0: not known yet, or at the end
  int64_t memory_bytes = 0, budget_bytes = 0;  // budget 0: no budget
  int64_t skipped = 0;
};

// Returns one line without control codes for the position. If it is too long, the bar shrinks first, then the least
// important numbers are removed.
std::string render_progress(const ProgressView& view, const LineStyle& style);

class Progress {
 public:
  struct Options {
    int64_t steps = 0;
    int64_t first_step = 0;      // steps done before this process (resume)
    int64_t log_every = 1;       // plain output: steps between lines
    int64_t budget_bytes = 0;
    std::function<double(int64_t)> work_before;    // work before a step, in units of equal time; default: steps
    std::FILE* out = stderr;
    std::optional<bool> terminal;                  // default: true if `out` is a terminal and TERM is not "dumb"
    std::function<double()> clock;                 // seconds; default: steady clock
    std::function<void(std::string_view)> record;  // gets the plain lines, also if `out` is a terminal; default: none
  };
  explicit Progress(Options options);

  void step(const StepMetrics& metrics);
  // Prints a line of other output above the live line.
  void note(std::string_view line);
  // Removes the live line until the next step, for output that does not use this class. Log messages do not need it:
  // they clear the line themselves.
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
