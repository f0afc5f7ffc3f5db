#include "report/metric_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace megalith {

std::string_view name(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::none: return "";
    case MetricUnit::nats: return "nats";
    case MetricUnit::seconds: return "s";
    case MetricUnit::tokens: return "tokens";
    case MetricUnit::tokens_per_s: return "tokens/s";
    case MetricUnit::bytes: return "bytes";
  }
  return "";
}

std::vector<std::vector<const MetricRow*>> metrics_by_chart() {
  std::vector<std::vector<const MetricRow*>> groups;
  for (const MetricRow& row : kMetrics) {
    const auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return !row.chart.empty() && group.front()->chart == row.chart; });
    if (same != groups.end()) same->push_back(&row);
    else groups.push_back({&row});
  }
  return groups;
}

std::string metrics_reference() {
  std::string page =
      "# Metrics\n"
      "Written by `make docs` from the table in src/report/metric_table.h.\n\n"
      "`metrics.jsonl` in the run directory has one JSON object per line and one line per step. Keys that do not apply are "
      "absent. JSON has no infinities: a non-finite number is `null`, and `KEY_nonfinite` says which (`nan`, `inf`, `-inf`). "
      "A key with a dot is inside an object: `disk.read_bytes` is `read_bytes` in the object `disk`.\n\n"
      "| key | unit | meaning | TensorBoard | chart in the report |\n"
      "|---|---|---|---|---|\n";
  const auto code = [](std::string_view text) { return text.empty() ? std::string() : fmt::format("`{}`", text); };
  for (const MetricRow& row : kMetrics)
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.key, name(row.unit), row.about, code(row.tag), row.chart);
  return page;
}

}  // namespace megalith
