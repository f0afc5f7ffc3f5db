#include "report/analysis_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ranges>

#include "report/html_text.h"

namespace megalith {
namespace {

constexpr size_t kBins = 20;

std::string bars(const MetricSummary& s) {
  const int64_t most = std::max<int64_t>(1, *std::ranges::max_element(s.histogram));
  const double width = (s.high - s.low) / static_cast<double>(kBins);
  std::string svg = R"(<svg viewBox="0 0 640 180" role="img">)";
  for (size_t i = 0; i < s.histogram.size(); i++) {
    const double height = 150.0 * static_cast<double>(s.histogram[i]) / static_cast<double>(most);
    const double from = s.low + width * static_cast<double>(i);
    svg += fmt::format(R"(<rect x="{}" y="{:.1f}" width="30" height="{:.1f}"><title>{:.6g} to {:.6g}: {}</title></rect>)",
                       i * 32, 155 - height, height, from, from + width, s.histogram[i]);
  }
  return svg + fmt::format(R"(<text x="0" y="174">{:.6g}</text><text x="640" y="174" text-anchor="end">{:.6g}</text></svg>)",
                           s.low, s.high);
}

std::string examples(const char* title, const std::vector<MetricExample>& list) {
  std::string out = fmt::format("<h3>{}</h3><table><tr><th>sample</th><th>value</th><th>text</th></tr>", title);
  for (const MetricExample& e : list)
    out += fmt::format("<tr><td>{}</td><td>{:.6g}</td><td>{}</td></tr>", e.sample, e.value, html_text(e.text));
  return out + "</table>";
}

// Adds the percentiles of the metric. The value at p% is the hardest sample that a filter admits at p%, but at least the
// easiest sample. Sorts a copy only as far as these ranks need: 8 bytes per sample.
void add_percentiles(MetricSummary& s, std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  auto ordered = copy.begin();  // elements before it are in their final order
  for (int percent : {0, 1, 5, 25, 50, 75, 95, 99, 100}) {
    const size_t admitted = std::max<size_t>(1, (copy.size() * static_cast<size_t>(percent) + 99) / 100);
    const auto rank = copy.begin() + static_cast<ptrdiff_t>(admitted) - 1;
    if (rank >= ordered) std::nth_element(ordered, rank, copy.end());
    ordered = rank + 1;
    s.percentiles.emplace_back(percent, *rank);
  }
}

// Returns the first `count` samples in an order. Allocates memory only for these.
template <class Before>
std::vector<MetricExample> first_samples(std::span<const double> values, size_t count, const Before& before) {
  std::vector<int64_t> first(count);
  std::ranges::partial_sort_copy(std::views::iota(int64_t{0}, std::ssize(values)), first, before);
  std::vector<MetricExample> list;
  for (int64_t sample : first) list.push_back({sample, values[static_cast<size_t>(sample)], ""});
  return list;
}

}  // namespace

MetricSummary summarise_metric(const std::string& metric, std::span<const double> values, int64_t count) {
  MetricSummary s{.metric = metric, .samples = std::ssize(values)};
  add_percentiles(s, values);
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  s.low = s.percentiles.front().second;
  s.high = s.percentiles.back().second;
  s.histogram.resize(kBins);
  for (double value : values) {
    const double place = s.high > s.low ? (value - s.low) / (s.high - s.low) * static_cast<double>(kBins) : 0;
    s.histogram[std::min(kBins - 1, static_cast<size_t>(place))]++;
  }
  auto easier = [&](int64_t a, int64_t b) {  // equal values keep the order of the data
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x < y || (x == y && a < b);
  };
  const auto shown = std::min(values.size(), static_cast<size_t>(count));
  s.easiest = first_samples(values, shown, easier);
  s.hardest = first_samples(values, shown, [&](int64_t a, int64_t b) { return easier(b, a); });
  return s;
}

std::string metric_table(const MetricSummary& s) {
  static constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int64_t most = std::max<int64_t>(1, *std::ranges::max_element(s.histogram));
  std::string picture, numbers;
  for (int64_t n : s.histogram) picture += kEighths[n == 0 ? 0 : 1 + (n * 7) / most];
  for (auto [percent, value] : s.percentiles) numbers += fmt::format("  {}%: {:.6g}", percent, value);
  std::string text = fmt::format("{}: {} samples, mean {:.6g}\n {}\n  {:.6g} |{}| {:.6g}\n", s.metric, s.samples, s.mean,
                                 numbers, s.low, picture, s.high);
  auto line = [](const char* kind, const MetricExample& e) {
    return fmt::format("  {} {:.6g} (sample {}): {}\n", kind, e.value, e.sample, e.text);
  };
  if (!s.easiest.empty()) text += line("easiest", s.easiest.front()) + line("hardest", s.hardest.front());
  return text;
}

nlohmann::json to_json(const MetricSummary& s) {
  auto list = [](const std::vector<MetricExample>& all) {
    nlohmann::json out = nlohmann::json::array();
    for (const MetricExample& e : all) out.push_back({{"sample", e.sample}, {"value", e.value}, {"text", e.text}});
    return out;
  };
  nlohmann::json percentiles;
  for (auto [percent, value] : s.percentiles) percentiles[fmt::to_string(percent)] = value;
  return {{"samples", s.samples}, {"mean", s.mean}, {"percentiles", percentiles}, {"low", s.low}, {"high", s.high},
          {"histogram", s.histogram}, {"easiest", list(s.easiest)}, {"hardest", list(s.hardest)}};
}

std::string analysis_page(std::span<const MetricSummary> summaries, const std::string& title) {
  std::string page = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}: difficulty</title>"
      "<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}"
      "svg{{max-width:40em;width:100%}}rect{{fill:#4477aa}}text{{font-size:13px}}"
      "table{{border-collapse:collapse}}td,th{{padding:.2em .6em;text-align:left;vertical-align:top;border-bottom:1px solid "
      "#ccc}}"
      "</style><h1>{0}: difficulty of the samples</h1>",
      html_text(title));
  for (const MetricSummary& s : summaries) {
    page += fmt::format("<h2>{}</h2><p>{} samples, mean {:.6g}</p>{}<table><tr>", html_text(s.metric), s.samples, s.mean,
                        bars(s));
    for (auto [percent, value] : s.percentiles) page += fmt::format("<th>{}%</th>", percent);
    page += "</tr><tr>";
    for (auto [percent, value] : s.percentiles) page += fmt::format("<td>{:.6g}</td>", value);
    page += "</tr></table>" + examples("Easiest", s.easiest) + examples("Hardest", s.hardest);
  }
  return page + "</html>\n";
}

}  // namespace megalith
