#include "report/progress.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "base/units.h"

namespace megalith {
namespace {

constexpr double kRedrawInterval = 0.1;  // seconds
constexpr double kSmoothing = 0.95;      // weight of the past in the loss shown

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string_view value = environment(name);
    if (value.empty()) continue;  // the first that is set decides
    for (const char* spelling : {"UTF-8", "utf-8", "UTF8", "utf8"})
      if (value.find(spelling) != value.npos) return true;
    return false;
  }
  return false;
}

int64_t columns_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

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

struct Progress::Screen {
  std::FILE* out;
  bool terminal;
  LineStyle style;
  std::mutex mutex;      // log messages come from any thread
  bool drawn = false;    // the live line is on the screen, the cursor at its end
  double drawn_at = -1e9;

  void draw(const ProgressView& view, double now, bool at_once) {
    std::lock_guard lock(mutex);
    if (!at_once && now - drawn_at < kRedrawInterval) return;
    style.width = columns_of(out);
    fmt::print(out, "\r{}\x1b[K", render_progress(view, style));
    std::fflush(out);
    drawn = true;
    drawn_at = now;
  }

  void clear() {
    std::lock_guard lock(mutex);
    clear_locked();
  }

  void print(std::string_view line) {
    std::lock_guard lock(mutex);
    clear_locked();
    fmt::print(out, "{}\n", line);
    std::fflush(out);
  }

 private:
  void clear_locked() {
    if (!drawn) return;
    std::fputs("\r\x1b[K", out);
    std::fflush(out);
    drawn = false;
    drawn_at = -1e9;  // the next step brings it back at once
  }
};

namespace {

// Stands before the log's terminal sink and takes the live line away for its message.
template <class Screen>
class ClearsLine : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ClearsLine(std::weak_ptr<Screen> screen) : screen_(std::move(screen)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg&) override {
    if (auto screen = screen_.lock()) screen->clear();
  }
  void flush_() override {}

 private:
  std::weak_ptr<Screen> screen_;
};

}  // namespace

Progress::Progress(Options options) : screen_(std::make_shared<Screen>()), options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
  screen_->out = options_.out;
  screen_->terminal =
      options_.terminal.value_or(::isatty(::fileno(options_.out)) && environment("TERM") != "dumb");
  screen_->style.colour = environment("NO_COLOR").empty();  // no-color.org: any value but an empty one
  screen_->style.utf8 = speaks_utf8();
  view_.step = options_.first_step;
  view_.loss = std::nan("");
  view_.steps = options_.steps;
  view_.budget_bytes = options_.budget_bytes;
  began_ = options_.clock();
  if (!screen_->terminal) return;
  auto& sinks = spdlog::default_logger()->sinks();
  auto clears = std::make_shared<ClearsLine<Screen>>(screen_);
  // Messages for the file only leave the line alone.
  if (!sinks.empty()) clears->set_level(sinks.front()->level());
  sinks.insert(sinks.begin(), clears);
}

Progress::~Progress() { clear(); }

void Progress::clear() { screen_->clear(); }

bool Progress::terminal() const { return screen_->terminal; }

void Progress::note(std::string_view line) {
  screen_->print(line);
  if (screen_->terminal && view_.step > options_.first_step) screen_->draw(view_, options_.clock(), true);
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
  double done = static_cast<double>(view_.step - options_.first_step);
  bool last = view_.step >= view_.steps;
  double left = static_cast<double>(view_.steps - view_.step);
  if (done > 0) view_.seconds_left = last ? -1 : (now - began_) / done * left;
  bool due = view_.step % std::max<int64_t>(options_.log_every, 1) == 0;
  if (screen_->terminal)
    screen_->draw(view_, now, last);
  else if (due || last || metrics.skipped || metrics.valid_loss)
    screen_->print(plain_line(view_, metrics));
}

}  // namespace megalith
