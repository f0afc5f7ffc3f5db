#include "report/task_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace megalith {

TaskProgress::TaskProgress(std::string what, Options options)
    : what_(std::move(what)), options_(std::move(options)), line_(options_.out, options_.terminal) {
  if (!options_.clock) options_.clock = steady_seconds;
}

void TaskProgress::update(int64_t done_bytes, int64_t total_bytes, const std::string& result) {
  const double now = options_.clock();
  if (began_ < 0) {
    began_ = printed_ = now;
    first_ = done_bytes;
  }
  const double share =
      total_bytes > 0 ? static_cast<double>(done_bytes) / static_cast<double>(total_bytes) : 1;
  const double seconds = now - began_, worked = static_cast<double>(done_bytes - first_);
  std::vector<LineField> fields{
      {fmt::format("{} {:3.0f}%", what_, std::clamp(share, 0.0, 1.0) * 100), Ink::plain, 0},
      {fmt::format("{} of {}", show(Bytes(done_bytes)), show(Bytes(total_bytes))), Ink::dim, 4},
      {result, Ink::plain, 2}};
  if (seconds > 0 && worked > 0) {
    fields.push_back({show(Bytes(static_cast<int64_t>(worked / seconds))) + "/s", Ink::plain, 3});
    const double left = seconds / worked * static_cast<double>(total_bytes - done_bytes);
    if (done_bytes < total_bytes) fields.push_back({show_left(left), Ink::plain, 1});
  }
  if (line_.terminal()) {
    line_.draw([&](const LineStyle& style) { return compose_line(share, fields, style); }, now,
               done_bytes >= total_bytes);
  } else if (now - printed_ >= options_.plain_seconds && done_bytes < total_bytes) {
    printed_ = now;
    std::string text;
    for (const LineField& field : fields) text += (text.empty() ? "" : "  ") + field.text;
    line_.print(text);
  }
}

}  // namespace megalith
