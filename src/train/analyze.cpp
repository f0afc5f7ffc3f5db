#include "train/analyze.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/check.h"
#include "data/deepspeed_index.h"
#include "data/metric_file.h"
#include "data/sample_metrics.h"
#include "memory/machine.h"
#include "report/task_progress.h"
#include "train/load_model.h"
#include "train/prepare_data.h"
#include "train/signals.h"

namespace megalith {
namespace {

constexpr std::string_view kLoss = "loss";

// The mean loss of a sample under a model, as training without dropout would see it.
class LossMetric : public SampleMetric {
 public:
  LossMetric(const std::filesystem::path& checkpoint, const Dataset& data) : model_(load_model(checkpoint)), data_(data) {
    const ModelShape& shape = model_.engine->model().shape();
    auto refuse = [&](const std::string& expected, const std::string& got) {
      throw UserError({checkpoint.string(), "metric loss", expected, got, "choose another checkpoint"});
    };
    if (shape.arch == Arch::bert) refuse("a model that predicts the next token", "bert");
    if (shape.context < data.sequence())
      refuse(fmt::format("a context of at least data.sequence ({})", data.sequence()), fmt::to_string(shape.context));
  }
  void compute(int64_t first, std::span<double> out) const override {
    const int64_t T = data_.sequence(), each = std::max<int64_t>(1, 2048 / T);
    for (int64_t i = 0; i < std::ssize(out); i += each) {
      Batch batch;
      batch.sequences = std::min(each, std::ssize(out) - i);
      batch.length = T;
      batch.ids.resize(static_cast<size_t>(batch.sequences * T));
      for (int64_t row = 0; row < batch.sequences; row++)
        data_.sample_tokens(first + i + row,
                            std::span(batch.ids).subspan(static_cast<size_t>(row * T), static_cast<size_t>(T)));
      batch.targets.assign(batch.ids.begin() + 1, batch.ids.end());
      batch.targets.push_back(kNoTarget);
      for (int64_t row = 1; row < batch.sequences; row++) batch.targets[static_cast<size_t>(row * T - 1)] = kNoTarget;
      const std::vector<float> losses = model_.engine->losses(batch);
      for (int64_t row = 0; row < batch.sequences; row++) {
        double sum = 0;
        for (int64_t p = 0; p < T; p++) sum += losses[static_cast<size_t>(row * T + p)];
        out[static_cast<size_t>(i + row)] = sum / static_cast<double>(std::max<int64_t>(1, T - 1));
      }
    }
  }
  bool threaded() const override { return false; }  // the model's own threads are at work

 private:
  LoadedModel model_;
  const Dataset& data_;
};

std::unique_ptr<SampleMetric> make_metric(const AnalysisRequest& request, const Config& config, const Dataset& data,
                                          int64_t threads, const std::function<void(int64_t)>& progress) {
  if (request.metric == kLoss) return std::make_unique<LossMetric>(request.checkpoint, data);
  const int64_t vocab = std::max<int64_t>(data.vocab_size(), config.model.shape.vocab);
  return make_token_metric(request.metric, data, vocab, threads, progress);
}

void check_request(const AnalysisRequest& request) {
  auto names = token_metrics();
  if (request.metric == kLoss) {
    if (request.checkpoint.empty())
      throw UserError(
          {"", "metric loss", "a checkpoint whose loss it is", "none", "give --checkpoint, or checkpoint: in curriculum"});
    return;
  }
  if (std::ranges::find(names, request.metric) == names.end())
    throw UserError({"", "curriculum", fmt::format("a metric of {}, loss, or one with file:", fmt::join(names, ", ")),
                     request.metric, "give your own values with file:"});
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
  if (!options.metrics.empty()) return options.metrics;
  std::vector<AnalysisRequest> all;
  for (const CurriculumSettings& entry : config.curriculum)
    if (!entry.changes_length() && entry.file.empty()) all.push_back({entry.metric, entry.checkpoint});
  if (all.empty())
    for (std::string_view name : token_metrics()) all.push_back({std::string(name), ""});
  return all;
}

MetricSubject subject_of(const AnalysisRequest& request, const Dataset& data) {
  MetricSubject subject{request.metric, data.samples(), data.fingerprint()};
  if (request.metric == kLoss)
    subject.data += " " + std::filesystem::absolute(request.checkpoint).lexically_normal().string();
  return subject;
}

}  // namespace

std::filesystem::path metric_values(const AnalysisRequest& request, const Config& config, const RunDirectory& run,
                                    const Dataset& data) {
  check_request(request);
  const std::filesystem::path path = run.file("analysis") / (request.metric + ".metric");
  const MetricSubject subject = subject_of(request, data);
  if (has_metric(path, subject)) return path;
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
  auto metric = make_metric(request, config, data, threads, [&](int64_t done) { show(counting, done); });
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
  return path;
}

std::vector<double> metric_of(const AnalysisRequest& request, const Config& config, const RunDirectory& run,
                              const Dataset& data) {
  return read_metric(metric_values(request, config, run, data), subject_of(request, data));
}

Analysis analyze(Config config, const AnalysisOptions& options) {
  check_for_training(config);
  for (const AnalysisRequest& request : wanted(config, options)) check_request(request);
  RunDirectory run(config.run.dir);
  auto say = [](const std::string& line) { log::info("{}", line); };
  auto tokenizer = prepare_tokenizer(config, run, say);
  at::set_num_threads(static_cast<int>(config.train.threads > 0 ? config.train.threads : usable_cores()));
  auto data = prepare_data(config, run, tokenizer.get(), say);
  Analysis analysis;
  for (const AnalysisRequest& request : wanted(config, options)) {
    const std::vector<double> values = metric_of(request, config, run, *data);
    analysis.files.push_back(metric_values(request, config, run, *data));
    MetricSummary summary = summarise_metric(request.metric, values, options.examples);
    add_texts(summary.easiest, *data, tokenizer.get());
    add_texts(summary.hardest, *data, tokenizer.get());
    analysis.summaries.push_back(std::move(summary));
    if (options.deepspeed.empty()) continue;
    const double scale = write_deepspeed_index(options.deepspeed, request.metric, values);
    if (scale != 1) log::info("{}: DeepSpeed's files hold whole numbers: values times {:.0f}", request.metric, scale);
  }
  analysis.page = run.file("analysis") / "analysis.html";
  write_file_atomically(analysis.page, analysis_page(analysis.summaries, run.path().filename().string()));
  return analysis;
}

}  // namespace megalith
