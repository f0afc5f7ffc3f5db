#include "report/html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "embedded/report.h"
#include "report/html_text.h"

namespace megalith {
namespace {

// Returns JSON for a script element. With these escapes, text of the run cannot close the element or open a comment.
std::string json_for_script(const nlohmann::json& data) {
  std::string out;
  for (char c : print_any_json(data)) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string render_report(const nlohmann::json& data) {
  std::string_view page = embedded::report_html;
  std::string out;
  // One pass, over the template only: text of the run that looks like a marker is not replaced.
  for (size_t open; (open = page.find("{{")) != page.npos;) {
    size_t close = page.find("}}", open);
    MEGALITH_ASSERT(close != page.npos, "report.html: a marker without its end");
    std::string_view marker = page.substr(open + 2, close - open - 2);
    out += page.substr(0, open);
    if (marker == "title")
      out += html_text(data.at("run").get<std::string>());
    else if (marker == "css")
      out += embedded::report_css;
    else if (marker == "data")
      out += json_for_script(data);
    else if (marker == "js")
      for (std::string_view script : {embedded::chart_js, embedded::timeline_js, embedded::curves_js,
                                      embedded::experts_js, embedded::plan_js, embedded::step_js, embedded::report_js})
        out += script;
    else
      MEGALITH_ASSERT(false, "report.html: unknown marker {}", marker);
    page.remove_prefix(close + 2);
  }
  return out.append(page);
}

void write_report(const std::filesystem::path& run_dir) {
  const nlohmann::json data = report_data(run_dir);
  for (const auto& [file, state] : data["files"].items())
    if (const std::string why = state; why != "ok")
      log::warn("{}: {}; report.html leaves it out", (run_dir / file).string(), why);
  const auto number = [&](const char* part, const char* key) {
    return data[part].is_object() ? data[part].value(key, int64_t{0}) : 0;
  };
  if (const int64_t recorded = number("so_far", "step"), done = number("summary", "steps"); recorded < done)
    log::warn("{}: the last record is of step {}, but the run ended at step {}", (run_dir / "metrics.jsonl").string(), recorded, done);
  write_file_atomically(run_dir / "report.html", render_report(data));
}

}  // namespace megalith
