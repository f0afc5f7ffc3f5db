// The live line itself: what fits into the terminal's width, and its colours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"
#include "report/progress.h"

namespace megalith {
namespace {

enum class Ink { plain, dim, accent, warning };

struct Field {
  std::string text;  // ASCII: one byte a column
  Ink ink;
  int rank;          // the largest goes first when the line is too long
};

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
  // Without colour the two halves need two shapes.
  std::string_view rest = style.colour ? "━" : "─";
  return paint(repeat("━", filled), Ink::accent, style.colour) +
         paint(repeat(rest, columns - filled), Ink::dim, style.colour);
}

std::string show_loss(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : std::string("not finite");
}

std::string show_rate(double tokens_per_s) {
  return show_count(std::llround(std::clamp(tokens_per_s, 0.0, 1e15))) + " tok/s";
}

// "1.20/4.00 GiB", or with two units where they differ.
std::string show_memory(const ProgressView& view) {
  std::string used = show(Bytes(view.memory_bytes)), budget = show(Bytes(view.budget_bytes));
  if (view.budget_bytes <= 0) return used;
  size_t unit = used.find(' ');
  if (used.substr(unit) == budget.substr(budget.find(' '))) used.resize(unit);
  return used + "/" + budget;
}

std::vector<Field> fields_of(const ProgressView& view) {
  std::string steps = fmt::format("{}", view.steps);
  std::vector<Field> fields;
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

std::string show_left(double seconds) { return seconds < 1 ? "<1s left" : show_seconds(seconds) + " left"; }

std::string render_progress(const ProgressView& view, const LineStyle& style) {
  constexpr int64_t kGap = 2, kBarMin = 8, kBarMax = 28;
  const int64_t width = std::max<int64_t>(style.width - 1, 1), brackets = style.utf8 ? 0 : 2;
  std::vector<Field> fields = fields_of(view);
  auto text_width = [&] {
    int64_t sum = 0;
    for (const Field& field : fields) sum += static_cast<int64_t>(field.text.size()) + kGap;
    return sum - kGap;
  };
  while (fields.size() > 1 && text_width() > width)
    fields.erase(std::ranges::max_element(fields, {}, &Field::rank));
  if (text_width() > width) fields.front().text.resize(static_cast<size_t>(width));
  std::string line;
  if (int64_t room = width - text_width() - kGap - brackets; room >= kBarMin) {
    double done = view.steps > 0 ? static_cast<double>(view.step) / static_cast<double>(view.steps) : 0;
    line = bar(done, std::min(room, kBarMax), style) + std::string(kGap, ' ');
  }
  for (size_t i = 0; i < fields.size(); i++) {
    if (i > 0) line.append(kGap, ' ');
    line += paint(fields[i].text, fields[i].ink, style.colour);
  }
  return line;
}

}  // namespace megalith
