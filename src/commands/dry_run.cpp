#include "commands/dry_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "checkpoint/store.h"
#include "cli/run_file.h"
#include "commands/run_text.h"
#include "launch/mpirun.h"
#include "planner/memory_table.h"
#include "planner/plan_json.h"
#include "run/data_files.h"
#include "run/foresee.h"
#include "run/prepare_data.h"
#include "run/setting_path.h"

namespace megalith {
namespace {

// The number of ranks of the run, and the largest number of ranks on one host.
struct RankCounts {
  int all = 1, of_host = 1;
};

RankCounts count_ranks(const launch::Environment& started, const TrainArguments& a) {
  if (started.role != launch::Role::alone) return {started.size, started.local_size};
  RankCounts counts{std::max(1, a.ranks), std::max(1, a.ranks)};
  if (a.hosts.empty()) return counts;
  counts.of_host = 1;
  for (const launch::HostSlots& host : launch::parse_hosts(a.hosts)) counts.of_host = std::max(counts.of_host, host.slots);
  return counts;
}

// The work that the run would do first, and the assumptions that the dry run makes instead.
struct FirstWork {
  std::vector<std::string> would, assumed;
};

FirstWork first_work(const Foreseen& foreseen, const Layout& layout) {
  const Run& run = foreseen.run;
  const DataSettings& data = run.config.data;
  FirstWork work;
  if (!foreseen.tokenizer->tokenizer() && data.tokenizer.train_vocab > 0) {
    work.would.push_back(fmt::format("train a tokenizer of at most {} tokens on {} of text", data.tokenizer.train_vocab,
                                     show(Bytes(stored_bytes(files_to_train_tokenizer_on(data))))));
    work.assumed.push_back(
        fmt::format("a tokenizer of {} tokens, the most that data.tokenizer.vocab allows",
                    data.tokenizer.train_vocab));
  }
  std::vector<std::string> texts = text_entries(data.train);
  std::ranges::copy(text_entries(data.valid), std::back_inserter(texts));
  if (!texts.empty()) {
    const auto files = expand_files(texts);
    work.would.push_back(fmt::format("tokenize {} of text ({}), unless an earlier run kept the tokens",
                                     show(Bytes(stored_bytes(files))),
                                     files.size() == 1 ? files.front().string() : fmt::format("{} files", files.size())));
    work.assumed.push_back("the text can be read to its end and has enough tokens for one batch");
  }
  const int64_t first = run.resume ? run.resume->step : 0;
  work.would.push_back(fmt::format(
      "{} on {}",
      first >= run.steps ? "train nothing (all steps are done)" : fmt::format("train steps {} to {}", first + 1, run.steps),
      layout.ranks() == 1 ? "one rank" : fmt::format("{} ranks ({})", layout.ranks(), show(layout))));
  return work;
}

std::string listed(const std::string& head, const std::vector<std::string>& points) {
  std::string text = points.empty() ? "" : fmt::format("{}\n", head);
  for (const std::string& point : points) text += fmt::format("  - {}\n", point);
  return text;
}

CommandResult checked(const CommandContext& context, const Config& config, const RankCounts& ranks) {
  const Layout layout = check_run(config, ranks.all, context.rank->environment().ranks_from());
  check_folder("run.dir", config.run.dir);
  const RunDirectory directory(config.run.dir, /*leads=*/false);
  const auto say = [](const std::string& line) { log::warn("{}", line); };
  const Foreseen foreseen = foresee_training(config, layout, {ranks.of_host, latest_valid(directory.checkpoints(), say)});
  const auto& [tokenizer, run, input] = foreseen;
  const Plan plan = make_plan(input, Measuring::forbidden);
  check_files(foreseen);
  const DataSettings& data = run.config.data;
  if (text_entries(data.train).empty() && text_entries(data.valid).empty())
    prepare_data(run, directory, tokenizer->tokenizer(), say);  // shards alone: opened, not written
  const MemoryTable table = memory_table(plan);
  const std::vector<ShapeForecast> shapes = forecast_shapes(input, plan, run.shapes, run.steps);
  const FirstWork work = first_work(foreseen, layout);
  print(context, fmt::format("{}, {}, {}{}\n{}{}{}{}", model_line(run), step_line(input, plan.micro_batch),
                             plan.threads == 1 ? "one thread" : fmt::format("{} threads", plan.threads),
                             plan.measured ? fmt::format(", {} per step", show_seconds(plan.predicted.seconds)) : "",
                             show(table),
                             shape_lines(shapes, plan.measured), lines(run.notes), listed("This assumes:", work.assumed)));
  print(context, listed(fmt::format("Dry run: found no mistake and wrote nothing. Without --dry-run the run in {} would:",
                                    config.run.dir), work.would));
  nlohmann::json json = to_json(plan, input);
  json["memory"] = to_json(table);
  json["shapes"] = to_json(shapes);
  json["notes"] = run.notes;
  json["dry_run"] = true;
  json["would"] = work.would;
  json["assumed"] = work.assumed;
  return {ExitCode::done, std::move(json)};
}

}  // namespace

CommandResult dry_run(const CommandContext& context, const TrainArguments& a) {
  const launch::Environment& started = context.rank->environment();
  if (started.rank > 0) return {ExitCode::done, nullptr};
  return from_run_file(a.path, a.overrides,
                       [&](const Config& config) { return checked(context, config, count_ranks(started, a)); });
}

}  // namespace megalith
