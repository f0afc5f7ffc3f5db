#include "analysis/analyze.h"

#include <nlohmann/json.hpp>

#include "cli/run_file.h"
#include "commands/commands.h"

namespace megalith {

CommandResult run_analyze(const CommandContext& context, const AnalyzeArguments& a) {
  const Analysis analysis = from_run_file(a.path, a.overrides, [&](const Config& config) {
    return analyze(config, {a.metrics, a.checkpoint, a.deepspeed, a.examples});
  });
  nlohmann::json metrics = nlohmann::json::object();
  for (size_t i = 0; i < analysis.summaries.size(); i++) {
    const MetricSummary& summary = analysis.summaries[i];
    print(context, metric_table(summary) + fmt::format("  values  {}\n\n", analysis.files[i].string()));
    metrics[summary.metric] = to_json(summary);
    metrics[summary.metric]["file"] = analysis.files[i].string();
  }
  print(context, fmt::format("report  {}\n", analysis.page.string()));
  return {ExitCode::done, {{"metrics", metrics}, {"page", analysis.page.string()}}};
}

}  // namespace megalith
