#include "schedule/show/draw_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "schedule/op_type.h"
#include "schedule/predict/memory_curve.h"

namespace megalith {
namespace {

constexpr double kWidth = 1200, kLeft = 96, kRight = 64, kInner = kWidth - kLeft - kRight;
constexpr double kRow = 30, kRowGap = 7, kMemoryHeight = 210;

// Indexed by MemoryKind.
constexpr std::array<std::string_view, kMemoryKinds> kMemoryColours{"#3f66cf", "#2f9d8f", "#d99a0b", "#e0604c",
                                                                    "#f0a498", "#b7c0d8", "#8e5bd0", "#4a9fd8"};
constexpr std::string_view kProcessColour = "#b3b8bf", kLimitColour = "#c8322b";

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string duration(double seconds) {
  if (seconds == 0) return "0";
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

// Returns 1, 2 or 5 times a power of ten, such that about `most` steps fit in `range`.
double round_step(double range, double most) {
  const double rough = range / most, power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  explicit Picture(const StepPicture& p)
      : p_(p),
        schedule_(*p.schedule),
        seconds_(std::max(step_seconds(p.spans), 1e-9)),
        points_(memory_over_time(schedule_, p.spans)) {}

  std::string draw() {
    text(kLeft, 30, p_.title, "class='title'");
    text(kLeft, 50, p_.subtitle, "class='soft'");
    y_ = 82;
    lanes();
    legend_of_ops();
    memory();
    legend_of_memory();
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' height='{1:.0f}' "
        "role='img'>\n"
        "<style>text{{font:12px system-ui,'Segoe UI',Roboto,'Liberation Sans',sans-serif;fill:#5c636e;"
        "font-variant-numeric:tabular-nums}} .title{{font-size:17px;font-weight:650;fill:#1b1d21}} .soft{{font-size:13px}} "
        ".head{{font-size:13px;font-weight:600;fill:#1b1d21}} .in{{font-size:11px;fill:#fff}} "
        ".dark{{font-size:11px;fill:#1b1d21}} .strong{{fill:#1b1d21}} "
        ".turn{{font-size:10.5px}} .limit{{fill:{2};font-weight:600}}</style>\n"
        "<rect width='100%' height='100%' fill='#fff'/>\n{3}</svg>\n",
        kWidth, y_ + 12, kLimitColour, svg_);
  }

 private:
  double x(double seconds) const { return kLeft + seconds / seconds_ * kInner; }

  void text(double at_x, double at_y, std::string_view what, std::string_view more = "") {
    svg_ += fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", at_x, at_y, more, escaped(what));
  }

  // Draws one row per lane that has ops. Ops narrower than a pixel are joined with neighbours of their kind, so that the
  // picture has one shape for them and not thousands.
  void lanes() {
    const auto busy = busy_seconds(schedule_, p_.spans);
    const double top = y_;
    std::string ops;
    for (size_t lane = 0; lane < kLanes; lane++) {
      std::vector<OpId> own;
      for (OpId op = 0; op < static_cast<OpId>(schedule_.ops.size()); op++)
        if (schedule_.ops[op].lane == static_cast<Lane>(lane) && p_.spans[op].ran()) own.push_back(op);
      if (own.empty()) continue;
      text(kLeft - 12, y_ + 20, name(static_cast<Lane>(lane)), "text-anchor='end' class='head'");
      text(kWidth - kRight + 10, y_ + 20, fmt::format("{:.0f}%", 100 * busy[lane] / seconds_));
      svg_ +=
          fmt::format("<rect x='{}' y='{:.1f}' width='{}' height='{}' rx='3' fill='#f1f2ee'/>\n", kLeft, y_, kInner, kRow);
      row(own);
      if (static_cast<Lane>(lane) == Lane::compute) turns(own);
      y_ += kRow + kRowGap;
    }
    time_axis(top, y_);
    y_ += 40;
  }

  void row(const std::vector<OpId>& own) {
    for (size_t i = 0; i < own.size();) {
      const OpKind kind = schedule_.ops[own[i]].kind;
      const double from = x(p_.spans[own[i]].start);
      double to = x(p_.spans[own[i]].end);
      size_t next = i + 1;
      while (to - from < 1 && next < own.size() && schedule_.ops[own[next]].kind == kind &&
             x(p_.spans[own[next]].start) - to < 0.5)
        to = x(p_.spans[own[next++]].end);
      box(own[i], next - i, from, to);
      i = next;
    }
  }

  // Writes above the compute lane which block it computes. Leaves out names that would overlap.
  void turns(const std::vector<OpId>& own) {
    double free_from = 0;
    for (size_t i = 0; i < own.size();) {
      const BlockId block = schedule_.ops[own[i]].block;
      size_t next = i + 1;
      while (next < own.size() && schedule_.ops[own[next]].block == block) next++;
      const double from = x(p_.spans[own[i]].start), to = x(p_.spans[own[next - 1]].end);
      i = next;
      if (block == kNoBlock) continue;
      const std::string label = short_name(block);
      const double middle = (from + to) / 2, half = 3.2 * static_cast<double>(label.size());
      if (to - from < 4 || middle - half < free_from) continue;
      text(middle, y_ - 4, label, "text-anchor='middle' class='turn'");
      free_from = middle + half + 4;
    }
  }

  std::string short_name(BlockId block) const {
    const std::string& whole = schedule_.blocks[block].name;
    return whole.starts_with("layer ") ? whole.substr(6) : whole;
  }

  void box(OpId id, size_t joined, double from, double to) {
    const Op& op = schedule_.ops[id];
    const double wide = to - from, shown = wide > 4 ? wide - 0.8 : std::max(0.4, wide);
    const std::string what = joined > 1 ? fmt::format("{} ops of {}", joined, name(op.kind)) : describe(schedule_, op);
    svg_ += fmt::format(
        "<rect x='{:.2f}' y='{:.1f}' width='{:.2f}' height='{}' fill='{}'><title>{}: {}, from {}</title></rect>\n", from,
        y_, shown, kRow, type_of(op.kind).colour, escaped(what),
        duration(p_.spans[id].end - p_.spans[id].start), duration(p_.spans[id].start));
    if (op.block == kNoBlock) return;
    if (op.lane == Lane::compute) return;  // turns() names its blocks above the lane
    const std::string label = short_name(op.block);
    if (shown < 6.5 * static_cast<double>(label.size()) + 6) return;
    text(from + shown / 2, y_ + 19, label, type_of(op.kind).light ? "text-anchor='middle' class='dark' pointer-events='none'"
                                                 : "text-anchor='middle' class='in' pointer-events='none'");
  }

  void time_axis(double top, double bottom) {
    const double step = round_step(seconds_, 10);
    for (double t = 0; t <= seconds_ * 1.0001; t += step) {
      svg_ +=
          fmt::format("<line x1='{0:.1f}' x2='{0:.1f}' y1='{1:.1f}' y2='{2:.1f}' stroke='#1b1d21' stroke-opacity='.08'/>\n",
                      x(t), top, bottom);
      text(x(t), bottom + 14, duration(t), "text-anchor='middle'");
    }
  }

  struct LegendEntry {
    std::string_view colour, what, about;  // `about` may be empty
  };

  // Draws coloured boxes with names and explanations, as many per line as fit.
  void legend(const std::vector<LegendEntry>& entries) {
    double at = kLeft;
    for (const auto& [colour, what, about] : entries) {
      const double name_wide = 6.6 * static_cast<double>(what.size());
      const double wide = 26 + name_wide + 6 * static_cast<double>(about.size());
      if (at + wide > kWidth - kRight) {
        at = kLeft;
        y_ += 20;
      }
      svg_ += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='11' height='11' rx='2' fill='{}'/>\n", at, y_ - 10, colour);
      text(at + 16, y_, what, about.empty() ? "" : "class='strong'");
      if (!about.empty()) text(at + 22 + name_wide, y_, about);
      at += wide + 8;
    }
    y_ += 16;
  }

  void legend_of_ops() {
    std::vector<LegendEntry> entries;
    for (const OpType* type : op_types())
      if (std::any_of(schedule_.ops.begin(), schedule_.ops.end(), [&](const Op& op) { return op.kind == type->kind; }))
        entries.push_back({type->colour, type->name, type->about});
    legend(entries);
  }

  int64_t total(const MemoryPoint& point) const { return point.use.total() + p_.process_bytes; }

  // Returns at most two points per pixel: the highest one, so that no short peak is lost, and then the last one.
  std::vector<MemoryPoint> shown_points() const {
    const double pixel = seconds_ / kInner;
    std::vector<MemoryPoint> shown;
    for (size_t i = 0; i < points_.size();) {
      const double column = std::floor(points_[i].seconds / pixel);
      size_t next = i + 1, highest = i;
      for (; next < points_.size() && std::floor(points_[next].seconds / pixel) == column; next++)
        if (total(points_[next]) > total(points_[highest])) highest = next;
      shown.push_back({column * pixel, points_[highest].use});
      // True if no other point follows in the next column.
      const bool free = next == points_.size() || points_[next].seconds >= (column + 2) * pixel;
      if (highest + 1 < next && free) shown.push_back({(column + 1) * pixel, points_[next - 1].use});
      i = next;
    }
    return shown;
  }

  void memory() {
    const auto highest = std::max_element(points_.begin(), points_.end(),
                                          [&](const auto& a, const auto& b) { return total(a) < total(b); });
    const bool near = p_.budget_bytes > 0 && p_.budget_bytes < 3 * total(*highest);
    const double most = 1.04 * static_cast<double>(near ? std::max(p_.budget_bytes, total(*highest)) : total(*highest));
    y_ += 22;
    svg_ += fmt::format(
        "<text x='{}' y='{:.1f}'><tspan class='head'>memory over the step</tspan>\u2002 peak {} at {}{}</text>\n", kLeft, y_,
        show(Bytes(total(*highest))), duration(highest->seconds),
        p_.budget_bytes <= 0 ? "" : fmt::format(", budget {}", show(Bytes(p_.budget_bytes))));
    y_ += 14;
    const double top = y_, bottom = y_ + kMemoryHeight;
    const auto y_of = [&](double bytes) { return bottom - bytes / most * kMemoryHeight; };
    areas(y_of);
    constexpr double kMiB = 1 << 20;
    const double step = std::exp2(std::ceil(std::log2(most / kMiB / 6))) * kMiB;
    for (double bytes = 0; bytes <= most; bytes += step) {
      svg_ += fmt::format("<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' stroke='#1b1d21' stroke-opacity='.1'/>\n",
                          kLeft, kLeft + kInner, y_of(bytes));
      text(kLeft - 10, y_of(bytes) + 4, bytes == 0 ? "0" : show(Bytes(static_cast<int64_t>(bytes))), "text-anchor='end'");
    }
    if (near) {
      const double at = y_of(static_cast<double>(p_.budget_bytes));
      svg_ += fmt::format(
          "<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='{}' stroke-width='1.5' stroke-dasharray='6 4'/>\n", kLeft,
          kLeft + kInner, at, at, kLimitColour);
      text(kLeft + kInner + 10, at + 4, "budget", "class='limit'");
    }
    svg_ += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3.5' fill='#1b1d21'/>\n", x(highest->seconds),
                        y_of(static_cast<double>(total(*highest))));
    time_axis(top, bottom);
    y_ = bottom + 38;
  }

  // Draws one area per kind as a step function, each on top of the areas before it.
  template <class YOf>
  void areas(const YOf& y_of) {
    const std::vector<MemoryPoint> shown = shown_points();
    std::vector<double> below(shown.size(), 0);
    const auto area = [&](std::string_view colour, std::string_view what, const auto& amount) {
      std::string forth, back;
      bool any = false;
      for (size_t i = 0; i < shown.size(); i++) {
        const double from = x(shown[i].seconds), to = i + 1 < shown.size() ? x(shown[i + 1].seconds) : kLeft + kInner;
        const double bytes = static_cast<double>(amount(shown[i])), low = y_of(below[i]), high = y_of(below[i] + bytes);
        forth += fmt::format("{}{:.1f},{:.1f} {:.1f},{:.1f}", i == 0 ? "M" : " L", from, high, to, high);
        back = fmt::format(" L{:.1f},{:.1f} {:.1f},{:.1f}", to, low, from, low) + back;
        below[i] += bytes;
        any |= bytes > 0;
      }
      if (!any) return;
      kinds_.push_back({colour, what, ""});
      svg_ += fmt::format("<path d='{}{}Z' fill='{}'><title>{}</title></path>\n", forth, back, colour, what);
    };
    if (p_.process_bytes > 0) area(kProcessColour, "process", [&](const MemoryPoint&) { return p_.process_bytes; });
    for (MemoryKind kind : {MemoryKind::parameters, MemoryKind::optimizer, MemoryKind::gradients, MemoryKind::saved,
                            MemoryKind::activations, MemoryKind::aside, MemoryKind::workspace, MemoryKind::staging})
      area(kMemoryColours[static_cast<size_t>(kind)], name(kind), [kind](const MemoryPoint& p) { return p.use[kind]; });
  }

  void legend_of_memory() { legend(kinds_); }

  const StepPicture& p_;
  const Schedule& schedule_;
  const double seconds_;
  const std::vector<MemoryPoint> points_;
  std::vector<LegendEntry> kinds_;  // the areas drawn so far
  double y_ = 0;  // vertical position of the next element
  std::string svg_;
};

}  // namespace

std::string draw_svg(const StepPicture& picture) {
  MEGALITH_ASSERT(picture.schedule && picture.spans.size() == picture.schedule->ops.size());
  return Picture(picture).draw();
}

}  // namespace megalith
