#include <memory>
#include <nlohmann/json.hpp>

#include "cli/checks.h"
#include "cli/commands.h"
#include "config/parse.h"
#include "train/analyze.h"

namespace megalith {

void add_analyze(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("analyze", "the difficulty of every training sample, for curricula");
  struct Arguments {
    std::string path;
    std::vector<std::string> overrides;
    AnalysisOptions options;
  };
  auto a = std::make_shared<Arguments>();
  command->add_option("RUN.yaml", a->path, "the run's settings")->required();
  command->add_option("key=value", a->overrides, "settings that replace the file's (values are YAML)");
  command
      ->add_option(
          "--metric", a->options.metrics,
          "length, rarity, length_rarity, compression, loss, or one that the curriculum has a file of; several with "
          "commas; default: all that the curriculum filters by, else the first four")
      ->delimiter(',')
      ->allow_extra_args(false);  // what follows may be key=value
  command->add_option("--checkpoint", a->options.checkpoint,
                      "metric loss: the model whose loss it is; default: the curriculum's");
  command->add_option("--deepspeed", a->options.deepspeed, "folder to write DeepSpeed's index files to, too");
  command->add_option("--examples", a->options.examples, "easiest and hardest samples shown")
      ->check(number_between(0, 1000))
      ->capture_default_str();
  command->callback([=, &context] {
    context.action = [=, &context] {
      const Analysis analysis = analyze(load_config(a->path, a->overrides), a->options);
      nlohmann::json metrics = nlohmann::json::object();
      for (size_t i = 0; i < analysis.summaries.size(); i++) {
        const MetricSummary& summary = analysis.summaries[i];
        print(context, metric_table(summary) + fmt::format("  values  {}\n\n", analysis.files[i].string()));
        metrics[summary.metric] = to_json(summary);
        metrics[summary.metric]["file"] = analysis.files[i].string();
      }
      print(context, fmt::format("page  {}\n", analysis.page.string()));
      return CommandResult{ExitCode::done, {{"metrics", metrics}, {"page", analysis.page.string()}}};
    };
  });
}

}  // namespace megalith
