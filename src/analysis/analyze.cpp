#include "analysis/analyze.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/difficulties.h"
#include "base/error.h"
#include "base/files.h"
#include "base/join.h"
#include "base/log.h"
#include "checkpoint/store.h"
#include "config/check.h"
#include "data/deepspeed_index.h"
#include "data/sample_metrics.h"
#include "engine/threads.h"
#include "run/prepare_data.h"
#include "text/utf8.h"

namespace megalith {
namespace {

// Shortens a text to fit into a line of a table. A sample may begin or end inside a character; such bytes become U+FFFD.
std::string one_line(std::string_view text, size_t longest = 160) {
  std::string line;
  for (size_t p = 0; p < text.size();) {
    const CodePoint point = code_point_at(text, p);
    if (p + point.bytes > longest) return line + "…";
    append_utf8(line, !point.valid() ? 0xFFFD : point.value < 32 || point.value == 127 ? ' ' : point.value);
    p += point.bytes;
  }
  return line;
}

void add_texts(std::vector<MetricExample>& examples, const Dataset& data, const Tokenizer* tokenizer) {
  std::vector<int64_t> ids;
  for (MetricExample& example : examples) {
    data.sample_tokens(example.sample, ids);
    if (tokenizer)
      example.text = one_line(tokenizer->decode(std::vector<TokenId>(ids.begin(), ids.end())));
    else
      example.text =
          fmt::format("tokens {} …", join(std::span(ids).first(std::min<size_t>(12, ids.size())), " "));
  }
}

// The metrics to compute. Each occurs once, even if several curriculum entries use it.
std::vector<DifficultyRequest> wanted(const Config& config, const AnalysisOptions& options) {
  std::vector<DifficultyRequest> all;
  auto add = [&](DifficultyRequest request) {
    if (request.of_model() && !options.checkpoint.empty()) request.checkpoint = options.checkpoint;
    if (std::ranges::find(all, request) == all.end()) all.push_back(request);
  };
  auto add_filters = [&](const std::string& name) {  // "" adds all filters
    bool any = false;
    for (const CurriculumSettings& entry : config.curriculum) {
      if (entry.changes_length() || (!name.empty() && entry.metric != name)) continue;
      add(request_of(entry));
      any = true;
    }
    return any;
  };
  if (options.metrics.empty() && !add_filters(""))
    for (std::string_view name : token_metrics()) add({std::string(name), "", ""});
  for (const std::string& name : options.metrics)
    if (!add_filters(name)) add({name, "", ""});
  if (!options.checkpoint.empty() && std::ranges::none_of(all, &DifficultyRequest::of_model))
    throw UserError({"", "--checkpoint", "metric loss (only it uses a checkpoint)", "only other metrics",
                     "add --metric loss, or remove --checkpoint"});
  return all;
}

// Returns a unique name for a metric's values. Several summaries may have the same metric: the losses of two checkpoints,
// for example.
std::string name_among(const std::vector<MetricSummary>& others, const std::string& metric) {
  std::string name = metric;
  for (int number = 2; std::ranges::find(others, name, &MetricSummary::metric) != others.end(); number++)
    name = fmt::format("{}_{}", metric, number);
  return name;
}

}  // namespace

Analysis analyze(const Config& config, const AnalysisOptions& options) {
  check_for_training(config);
  const std::vector<DifficultyRequest> requests = wanted(config, options);
  for (const DifficultyRequest& request : requests) check_request(request, "metric " + request.metric);
  if (!options.deepspeed.empty()) make_deepspeed_folder(options.deepspeed);
  const RunDirectory directory(config.run.dir);
  auto say = [](const std::string& line) { log::info("{}", line); };
  // Training does the same: without a checkpoint, an existing tokenizer.json may belong to other text or another vocabulary.
  const std::optional<Found> checkpoint = newest_checkpoint(directory.checkpoints());
  if (!checkpoint) std::filesystem::remove(directory.file("tokenizer.json"));
  KeptTokenizer tokenizer(directory, say);
  const Run run = prepare_run(config, {.resume = checkpoint, .tokenizer = tokenizer, .say = say});
  set_threads(run.threads);
  auto data = prepare_data(run, directory, tokenizer.tokenizer(), say);
  Difficulties difficulties(run, directory, *data);
  auto summarised = [&](const std::string& name, const std::vector<double>& values) {
    MetricSummary summary = summarise_metric(name, values, options.examples);
    add_texts(summary.easiest, *data, tokenizer.tokenizer());
    add_texts(summary.hardest, *data, tokenizer.tokenizer());
    return summary;
  };
  Analysis analysis;
  for (const DifficultyRequest& request : requests) {
    const auto [path, values] = difficulties.of(request);
    analysis.files.push_back(path);
    const std::string name = name_among(analysis.summaries, request.metric);
    analysis.summaries.push_back(summarised(name, values));
    if (options.deepspeed.empty()) continue;
    const double scale = write_deepspeed_index(options.deepspeed, name, values);
    if (scale != 1)
      log::info("{}: DeepSpeed's files contain integers, so the values are multiplied by {:.0f}", name, scale);
  }
  std::vector<MetricSummary> shown = analysis.summaries;  // the page also shows metrics of earlier calls
  for (std::string_view metric : token_metrics())
    if (const DifficultyRequest other{std::string(metric), "", ""};
        std::ranges::find(requests, other) == requests.end() && difficulties.known(metric))
      shown.push_back(summarised(name_among(shown, other.metric), difficulties.of(other).values));
  analysis.page = directory.file("analysis") / "analysis.html";
  std::filesystem::create_directories(analysis.page.parent_path());
  write_file_atomically(analysis.page, analysis_page(shown, directory.path().filename().string()));
  return analysis;
}

}  // namespace megalith
