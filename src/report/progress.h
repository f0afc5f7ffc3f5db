// What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

struct LineStyle {
  int64_t width = 80;   // columns; the line never takes the last one, so that no terminal wraps it
  bool colour = false;
  bool utf8 = false;    // box-drawing bar; otherwise ASCII
};

std::string show_left(double seconds);  // "2m 05s left"

// One line without control codes for position. The bar shrinks first, then the least needed numbers go.
std::string render_progress(const ProgressView& view, const LineStyle& style);

class Progress {
 public:
  struct Options {
    int64_t steps = 0;
    int64_t first_step = 0;      // steps done before this process (resume)
    int64_t log_every = 1;       // plain output: steps between lines
    int64_t budget_bytes = 0;
    std::FILE* out = stderr;
    std::optional<bool> terminal;                  // default: whether `out` is one (and TERM is not "dumb")
    std::function<double()> clock;                 // seconds; default: steady clock
  };
  explicit Progress(Options options);
  ~Progress();  // removes the live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepMetrics& metrics);
  // A line of other output: printed above the live line, which follows it.
  void note(std::string_view line);
  // Removes the live line until the next step, for output that goes around this class. Log messages need no
  // call: they clear the line themselves.
  void clear();
  bool terminal() const;

 private:
  struct Screen;                    // shared with the log's hook, which may outlive this object
  std::shared_ptr<Screen> screen_;
  Options options_;
  ProgressView view_;
  double began_;
  double smoothing_weight_ = 0;     // sum of weights behind view_.loss
};

}  // namespace megalith
