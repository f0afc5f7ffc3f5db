#include "schedule/show/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "schedule/op_type.h"

namespace megalith {
namespace {

constexpr size_t kKinds = 256;

std::string show_short(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

// Returns one letter per cell: the op kind with the most time in the cell, or '.' if the lane was idle for longer.
std::string row(const Schedule& schedule, std::span<const Span> spans, Lane lane, double seconds, int cells) {
  std::vector<std::array<double, kKinds>> shares(static_cast<size_t>(cells));  // time of each kind, in units of a cell
  for (size_t op = 0; op < spans.size(); op++) {
    if (schedule.ops[op].lane != lane || !spans[op].ran() || seconds <= 0) continue;
    const double from = spans[op].start / seconds * cells, to = spans[op].end / seconds * cells;
    for (int cell = static_cast<int>(from); cell < cells && cell < to; cell++) {
      shares[cell][static_cast<size_t>(schedule.ops[op].kind)] +=
          std::min(to, cell + 1.0) - std::max<double>(from, cell);
    }
  }
  std::string text;
  for (const auto& share : shares) {
    double idle = 1;
    for (double s : share) idle -= s;
    const auto most = std::max_element(share.begin(), share.end());
    text += *most > 0 && *most >= idle ? type_of(static_cast<OpKind>(most - share.begin())).letter : '.';
  }
  return text;
}

}  // namespace

std::string draw_timeline(const Schedule& schedule, std::span<const Span> spans, int columns) {
  MEGALITH_ASSERT(spans.size() == schedule.ops.size() && columns >= 40);
  const double seconds = step_seconds(spans);
  const auto busy = busy_seconds(schedule, spans);
  constexpr int kAround = 16;  // "compute |" before, "| 100 %" after
  const int cells = columns - kAround;

  std::array<bool, kLanes> used_lanes{};
  std::array<bool, kKinds> used_kinds{};
  for (const Op& op : schedule.ops) {
    used_lanes[static_cast<size_t>(op.lane)] = true;
    used_kinds[static_cast<size_t>(op.kind)] = true;
  }
  std::string text;
  for (size_t lane = 0; lane < kLanes; lane++) {
    if (!used_lanes[lane]) continue;
    text += fmt::format("{:<8}|{}| {:3.0f} %\n", name(static_cast<Lane>(lane)),
                        row(schedule, spans, static_cast<Lane>(lane), seconds, cells),
                        seconds > 0 ? 100 * busy[lane] / seconds : 0);
  }
  text += fmt::format("{:8} 0{:>{}}\n", "", show_short(seconds), cells - 1);
  std::string legend = fmt::format("{:8} . idle", "");
  size_t line = 0;  // start of the legend's last line
  for (const OpType* type : op_types()) {
    if (!used_kinds[static_cast<size_t>(type->kind)]) continue;
    const std::string entry = fmt::format("  {} {}", type->letter, type->name);
    if (legend.size() - line + entry.size() > static_cast<size_t>(columns)) {
      legend += '\n';
      line = legend.size();
      legend += fmt::format("{:7}", "");
    }
    legend += entry;
  }
  return text + legend + '\n';
}

// The fields follow "Trace Event Format", a document of the Chromium project. ph X is an event with a duration. ph M names
// processes and threads. Times are in microseconds.
std::string trace_json(const std::vector<TraceProcess>& processes) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  auto name_it = [&](const char* what, int pid, size_t tid, const Json& args) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", args}});
  };
  std::vector<std::string> titles;
  for (const TraceProcess& process : processes) {
    const Schedule& schedule = *process.schedule;
    MEGALITH_ASSERT(process.spans.size() == schedule.ops.size());
    const auto known = std::find(titles.begin(), titles.end(), process.title);
    const int pid = static_cast<int>(known - titles.begin()) + 1;
    if (known == titles.end()) {
      titles.push_back(process.title);
      name_it("process_name", pid, 0, {{"name", process.title}});
      name_it("process_sort_index", pid, 0, {{"sort_index", pid}});
      for (size_t lane = 0; lane < kLanes; lane++) {
        name_it("thread_name", pid, lane + 1, {{"name", name(static_cast<Lane>(lane))}});
        name_it("thread_sort_index", pid, lane + 1, {{"sort_index", lane + 1}});
      }
    }
    for (size_t op = 0; op < schedule.ops.size(); op++) {
      const Span& span = process.spans[op];
      if (!span.ran()) continue;
      const Op& it = schedule.ops[op];
      Json args = Json::object();
      if (it.block != kNoBlock) args["block"] = schedule.blocks[it.block].name;
      if (it.micro != kNoMicro) args["micro"] = it.micro;
      events.push_back({{"name", describe(schedule, it)},
                        {"cat", name(it.kind)},
                        {"ph", "X"},
                        {"ts", (process.start + span.start) * 1e6},
                        {"dur", (span.end - span.start) * 1e6},
                        {"pid", pid},
                        {"tid", static_cast<size_t>(it.lane) + 1},
                        {"args", std::move(args)}});
    }
  }
  const Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return print_any_json(trace);
}

}  // namespace megalith
