#include "analysis/analyze.h"

#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "config/parse.h"

namespace megalith {

CommandResult run_analyze(const CommandContext& context, const AnalyzeArguments& a) {
  const Analysis analysis =
      analyze(load_config(a.path, a.overrides), {a.metrics, a.checkpoint, a.deepspeed, a.examples});
  nlohmann::json metrics = nlohmann::json::object();
  for (size_t i = 0; i < analysis.summaries.size(); i++) {
    const MetricSummary& summary = analysis.summaries[i];
    print(context, metric_table(summary) + fmt::format("  values  {}\n\n", analysis.files[i].string()));
    metrics[summary.metric] = to_json(summary);
    metrics[summary.metric]["file"] = analysis.files[i].string();
  }
  print(context, fmt::format("page  {}\n", analysis.page.string()));
  return {ExitCode::done, {{"metrics", metrics}, {"page", analysis.page.string()}}};
}

}  // namespace megalith
