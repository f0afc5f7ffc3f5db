#include "train/analyze.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/check.h"
#include "config/nearest.h"
#include "data/deepspeed_index.h"
#include "data/metric_file.h"
#include "data/sample_metrics.h"
#include "memory/machine.h"
#include "report/task_progress.h"
#include "train/loss_metric.h"
#include "train/prepare_data.h"
#include "train/signals.h"

namespace megalith {
namespace {

constexpr std::string_view kLoss = "loss";

std::unique_ptr<SampleMetric> make_metric(const AnalysisRequest& request, const Config& config, const RunDirectory& run,
                                          const Dataset& data, int64_t threads,
                                          const std::function<void(int64_t)>& progress) {
  if (request.metric == kLoss) return make_loss_metric(request.checkpoint, config, run, data);
  const int64_t vocab = std::max<int64_t>(data.vocab_size(), config.model.shape.vocab);
  return make_token_metric(request.metric, data, vocab, threads, progress);
}

std::filesystem::path path_of(const AnalysisRequest& request, const std::filesystem::path& run_dir) {
  return run_dir / "analysis" / (request.metric + ".metric");
}

std::string one_line(std::string text, size_t longest = 160) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  if (text.size() <= longest) return text;
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end--;  // not inside a character
  return text.substr(0, end) + "…";
}

void add_texts(std::vector<MetricExample>& examples, const Dataset& data, const Tokenizer* tokenizer) {
  std::vector<int64_t> ids(static_cast<size_t>(data.sequence()));
  for (MetricExample& example : examples) {
    data.sample_tokens(example.sample, ids);
    if (tokenizer)
      example.text = one_line(tokenizer->decode(std::vector<TokenId>(ids.begin(), ids.end())));
    else
      example.text =
          fmt::format("tokens {} …", fmt::join(ids.begin(), ids.begin() + std::min<ptrdiff_t>(12, std::ssize(ids)), " "));
  }
}

std::vector<AnalysisRequest> wanted(const Config& config, const AnalysisOptions& options) {
  std::vector<AnalysisRequest> filters, all;
  for (const CurriculumSettings& entry : config.curriculum)
    if (!entry.changes_length()) filters.push_back({entry.metric, entry.checkpoint, entry.file});
  if (options.metrics.empty()) all = filters;
  for (const std::string& name : options.metrics) {
    auto known = std::ranges::find(filters, name, &AnalysisRequest::metric);
    all.push_back(known == filters.end() ? AnalysisRequest{name, "", ""} : *known);
  }
  if (all.empty())
    for (std::string_view name : token_metrics()) all.push_back({std::string(name), "", ""});
  if (options.checkpoint.empty()) return all;
  auto loss = std::ranges::find(all, kLoss, &AnalysisRequest::metric);
  if (loss == all.end())
    throw UserError({"", "--checkpoint", "metric loss beside it", "other metrics", "add --metric loss"});
  loss->checkpoint = options.checkpoint;
  return all;
}

// Computes what is not there yet.
void compute(const AnalysisRequest& request, const Config& config, const RunDirectory& run, const Dataset& data,
             const std::filesystem::path& path, const MetricSubject& subject) {
  std::filesystem::create_directories(path.parent_path());
  MetricWriter writer(path, subject);
  if (writer.done() > 0) log::info("{}: going on after {} of {} samples", request.metric, writer.done(), data.samples());

  const int64_t sample_bytes = data.sequence() * 2,
                threads = config.train.threads > 0 ? config.train.threads : usable_cores();
  StopSignals signals("\nstopping and keeping what is done; once more stops at once\n");
  TaskProgress counting("counting tokens"), progress("analyzing " + request.metric);
  auto show = [&](TaskProgress& line, int64_t done) {
    line.update(done * sample_bytes, data.samples() * sample_bytes, fmt::format("{} samples", show_count(done)));
  };
  auto metric = make_metric(request, config, run, data, threads, [&](int64_t done) { show(counting, done); });
  const int64_t at_once = metric->threaded() ? threads : 1;
  std::vector<double> values(static_cast<size_t>(at_once * kSampleChunk));  // of one round
  const int64_t begin = writer.done();
  auto room = [&](int64_t first, int64_t count) {
    return std::span(values).subspan(static_cast<size_t>((first - begin) % (at_once * kSampleChunk)),
                                     static_cast<size_t>(count));
  };
  const bool whole = for_samples(
      begin, data.samples(), at_once, [&](int64_t first, int64_t count) { metric->compute(first, room(first, count)); },
      [&](int64_t first, int64_t count) {
        writer.add(room(first, count));
        show(progress, writer.done());
      },
      [&] { return signals.stop_requested(); });
  if (!whole)
    throw Interrupted(
        fmt::format("stopped after {} of {} samples; the same command goes on", writer.done(), data.samples()));
  writer.finish();
}

}  // namespace

void check_request(const AnalysisRequest& request, const std::string& key, const std::filesystem::path& run_dir) {
  const std::string here = fmt::format("the current folder is {}", std::filesystem::current_path().string());
  if (!request.file.empty()) {
    if (!std::filesystem::exists(request.file) && !is_deepspeed_index(request.file))
      throw UserError({request.file, key + ".file", "a file", "nothing of that name", here});
    return;
  }
  std::vector<std::string_view> names(token_metrics().begin(), token_metrics().end());
  names.push_back(kLoss);
  if (std::ranges::find(names, request.metric) == names.end()) {
    const std::string_view near = nearest(request.metric, names);
    throw UserError({"", key, fmt::format("one of {}, or any name with file: beside it", fmt::join(names, ", ")),
                     request.metric,
                     near.empty() ? "give your own values with file:" : fmt::format("did you mean {}?", near)});
  }
  if (request.metric != kLoss) return;
  if (request.checkpoint.empty())
    throw UserError({"", key, "a checkpoint whose loss it is", "none", "give --checkpoint, or checkpoint: in curriculum"});
  if (!std::filesystem::exists(request.checkpoint) && !std::filesystem::exists(path_of(request, run_dir)))
    throw UserError({request.checkpoint, key + ".checkpoint", "a folder with a model", "nothing of that name", here});
}

MetricValues metric_of(const AnalysisRequest& request, const Config& config, const RunDirectory& run, const Dataset& data,
                       bool goes_on) {
  MetricSubject subject{request.metric, data.samples(), data.fingerprint(), ""};
  if (!request.file.empty()) return {request.file, read_metric(request.file, subject)};
  const std::filesystem::path path = path_of(request, run.path());
  if (goes_on && std::filesystem::exists(path)) return {path, read_metric(path, subject)};
  if (request.metric == kLoss) subject.model = loss_named(request.checkpoint, config);
  if (!has_metric(path, subject)) compute(request, config, run, data, path, subject);
  return {path, read_metric(path, subject)};
}

Analysis analyze(Config config, const AnalysisOptions& options) {
  check_for_training(config);
  const std::vector<AnalysisRequest> requests = wanted(config, options);
  for (const AnalysisRequest& request : requests) check_request(request, "metric " + request.metric, config.run.dir);
  if (!options.deepspeed.empty()) make_deepspeed_folder(options.deepspeed);
  RunDirectory run(config.run.dir);
  auto say = [](const std::string& line) { log::info("{}", line); };
  auto tokenizer = prepare_tokenizer(config, run, say);
  at::set_num_threads(static_cast<int>(config.train.threads > 0 ? config.train.threads : usable_cores()));
  auto data = prepare_data(config, run, tokenizer.get(), say);
  Analysis analysis;
  for (const AnalysisRequest& request : requests) {
    const auto [path, values] = metric_of(request, config, run, *data);
    analysis.files.push_back(path);
    MetricSummary summary = summarise_metric(request.metric, values, options.examples);
    add_texts(summary.easiest, *data, tokenizer.get());
    add_texts(summary.hardest, *data, tokenizer.get());
    analysis.summaries.push_back(std::move(summary));
    if (options.deepspeed.empty()) continue;
    const double scale = write_deepspeed_index(options.deepspeed, request.metric, values);
    if (scale != 1) log::info("{}: DeepSpeed's files hold whole numbers: values times {:.0f}", request.metric, scale);
  }
  analysis.page = run.file("analysis") / "analysis.html";
  std::filesystem::create_directories(analysis.page.parent_path());
  write_file_atomically(analysis.page, analysis_page(analysis.summaries, run.path().filename().string()));
  return analysis;
}

}  // namespace megalith
