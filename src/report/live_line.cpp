#include "report/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "base/units.h"

namespace megalith {
namespace {

constexpr double kRedrawInterval = 0.1;  // seconds

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string_view value = environment(name);
    if (value.empty()) continue;  // the first variable that is set decides
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

std::string paint(std::string_view text, Ink ink, bool colour) {
  if (!colour || ink == Ink::plain || text.empty()) return std::string(text);
  const char* code = ink == Ink::dim ? "2" : ink == Ink::accent ? "36" : "33";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string bar(double done, int64_t columns, const LineStyle& style) {
  auto filled = static_cast<int64_t>(std::clamp(done, 0.0, 1.0) * static_cast<double>(columns));
  auto repeat = [](std::string_view piece, int64_t times) {
    std::string out;
    for (int64_t i = 0; i < times; i++) out += piece;
    return out;
  };
  if (!style.utf8) return "[" + repeat("=", filled) + repeat(" ", columns - filled) + "]";
  // Without colour the two parts need different characters.
  std::string_view rest = style.colour ? "━" : "─";
  return paint(repeat("━", filled), Ink::accent, style.colour) +
         paint(repeat(rest, columns - filled), Ink::dim, style.colour);
}

// A closed terminal or a full disk must not stop the work. fmt::print would throw.
void write_out(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace

std::string show_left(double seconds) {
  return seconds < 1 ? "<1s left" : show_seconds(seconds) + " left";
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string compose_line(double done, std::vector<LineField> fields, const LineStyle& style) {
  constexpr int64_t kGap = 2, kBarMin = 8, kBarMax = 28;
  const int64_t width = std::max<int64_t>(style.width - 1, 1), brackets = style.utf8 ? 0 : 2;
  auto text_width = [&] {
    int64_t sum = 0;
    for (const LineField& field : fields) sum += static_cast<int64_t>(field.text.size()) + kGap;
    return sum - kGap;
  };
  while (fields.size() > 1 && text_width() > width)
    fields.erase(std::ranges::max_element(fields, {}, &LineField::rank));
  if (text_width() > width) fields.front().text.resize(static_cast<size_t>(width));
  std::string line;
  if (int64_t room = width - text_width() - kGap - brackets; room >= kBarMin)
    line = bar(done, std::min(room, kBarMax), style) + std::string(kGap, ' ');
  for (size_t i = 0; i < fields.size(); i++) {
    if (i > 0) line.append(kGap, ' ');
    line += paint(fields[i].text, fields[i].ink, style.colour);
  }
  return line;
}

struct LiveLine::Screen {
  std::FILE* out;
  bool terminal;
  LineStyle style;
  std::mutex mutex;    // log messages come from any thread
  bool drawn = false;  // the line is on the screen, with the cursor at its end
  double drawn_at = -1e9;

  void clear_locked() {
    if (!drawn) return;
    write_out(out, "\r\x1b[K");
    drawn = false;
    drawn_at = -1e9;  // the next draw shows it again at once
  }
};

LiveLine::LiveLine(std::FILE* out, std::optional<bool> terminal) : screen_(std::make_shared<Screen>()) {
  screen_->out = out;
  screen_->terminal = terminal.value_or(::isatty(::fileno(out)) && environment("TERM") != "dumb");
  screen_->style.colour = environment("NO_COLOR").empty();  // no-color.org: any value except an empty one
  screen_->style.utf8 = speaks_utf8();
  if (!screen_->terminal) return;
  // A log message replaces the line.
  log::before_terminal_lines([weak = std::weak_ptr<Screen>(screen_)] {
    auto screen = weak.lock();
    if (!screen) return;
    std::lock_guard lock(screen->mutex);
    screen->clear_locked();
  });
}

LiveLine::~LiveLine() {
  clear();
}

bool LiveLine::terminal() const {
  return screen_->terminal;
}

void LiveLine::draw(const std::function<std::string(const LineStyle&)>& render, double now, bool at_once) {
  std::lock_guard lock(screen_->mutex);
  if (!at_once && now - screen_->drawn_at < kRedrawInterval) return;
  screen_->style.width = columns_of(screen_->out);
  write_out(screen_->out, fmt::format("\r{}\x1b[K", render(screen_->style)));
  screen_->drawn = true;
  screen_->drawn_at = now;
}

void LiveLine::clear() {
  std::lock_guard lock(screen_->mutex);
  screen_->clear_locked();
}

void LiveLine::print(std::string_view line) {
  std::lock_guard lock(screen_->mutex);
  screen_->clear_locked();
  write_out(screen_->out, fmt::format("{}\n", line));
}

}  // namespace megalith
