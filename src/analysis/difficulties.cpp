#include "analysis/difficulties.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "analysis/loss_metric.h"
#include "base/error.h"
#include "base/join.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "data/sample_metrics.h"
#include "memory/machine.h"
#include "report/task_progress.h"

namespace megalith {
namespace {

// Losses of other weights or other data have other file names. So files that a run uses are never replaced.
std::string file_name(const MetricSubject& subject) {
  if (subject.model.empty()) return subject.metric + ".metric";
  const std::string of = subject.data + subject.model;
  return fmt::format("{}-{:016x}.metric", subject.metric, XXH3_64bits(of.data(), of.size()));
}

}  // namespace

Difficulties::Difficulties(const Run& run, const RunDirectory& directory, const Dataset& data)
    : run_(run),
      directory_(directory),
      data_(data),
      threads_(run.config.train.threads > 0 ? run.config.train.threads : usable_cores()),
      fingerprint_(data.fingerprint()) {}

MetricSubject Difficulties::subject_of(std::string_view metric) const {
  return {std::string(metric), data_.samples(), fingerprint_, ""};
}

std::filesystem::path Difficulties::path_of(const MetricSubject& subject) const {
  return directory_.file("analysis") / file_name(subject);
}

bool Difficulties::known(std::string_view metric) const {
  const MetricSubject subject = subject_of(metric);
  return has_metric(path_of(subject), subject);
}

MetricValues Difficulties::of(const DifficultyRequest& request) {
  MetricSubject subject = subject_of(request.metric);
  for (const std::string& given : {request.file, request.kept})
    if (!given.empty()) return {given, read_metric(given, subject)};
  if (request.of_model()) subject.model = loss_named(request.checkpoint, run_.config);
  const std::filesystem::path path = path_of(subject);
  if (!has_metric(path, subject)) compute(request, path, subject);
  return {path, read_metric(path, subject)};
}

void Difficulties::compute(const DifficultyRequest& request, const std::filesystem::path& path,
                           const MetricSubject& subject) {
  std::filesystem::create_directories(path.parent_path());
  MetricWriter writer(path, subject);
  if (writer.done() > 0) log::info("{}: resuming after {} of {} samples", request.metric, writer.done(), data_.samples());

  StopSignals signals("\nstopping; finished samples are kept. Press Ctrl-C again to stop now.\n");
  const auto stop = [&] { return signals.stop_requested(); };
  TaskProgress counting("counting tokens"), progress("analyzing " + request.metric);
  auto show = [&](TaskProgress& line, int64_t done) {
    const int64_t sample_bytes = data_.sample_length() * 2;
    line.update(done * sample_bytes, data_.samples() * sample_bytes, fmt::format("{} samples", show_count(done)));
  };
  const int64_t vocab = std::max<int64_t>(data_.vocab_size(), run_.shape.vocab);
  auto costs = [&]() -> std::span<const double> {
    auto show_counted = [&](int64_t done) { show(counting, done); };
    if (!token_costs_) token_costs_ = token_costs(data_, vocab, threads_, show_counted, stop);
    if (!token_costs_) throw Interrupted("stopped while counting tokens; run the same command again to restart the count");
    return *token_costs_;
  };
  const auto metric = request.of_model() ? make_loss_metric(request.checkpoint, run_.config, directory_, data_)
                                         : make_token_metric(request.metric, data_, vocab, costs);
  SampleWalk walk = walk_of(data_, writer.done(), metric->threaded() ? threads_ : 1, metric->tokens_at_once());
  walk.stop = stop;
  std::vector<double> values(static_cast<size_t>(walk.threads * walk.chunk));  // values of one round of chunks
  auto room = [&](const SampleChunk& chunk) {
    return std::span(values).subspan(static_cast<size_t>(chunk.thread * walk.chunk), static_cast<size_t>(chunk.count));
  };
  const bool whole = for_samples(
      walk, [&](const SampleChunk& chunk) { metric->compute(chunk.first, room(chunk)); },
      [&](const SampleChunk& chunk) {
        writer.add(room(chunk));
        show(progress, writer.done());
      });
  if (!whole)
    throw Interrupted(
        fmt::format("stopped after {} of {} samples; run the same command again to resume", writer.done(), data_.samples()));
  writer.finish();
}

}  // namespace megalith
