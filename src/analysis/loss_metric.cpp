#include "analysis/loss_metric.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "checkpoint/store.h"
#include "config/names.h"
#include "data/dataset.h"
#include "families/family.h"
#include "inference/load_model.h"
#include "text/same_tokens.h"

namespace megalith {
namespace {

// Computes a fingerprint from the size and the bytes at up to 256 places of each file. This is enough because training
// changes all weights, and a large model need not be read twice.
std::string weights_fingerprint(const std::filesystem::path& folder) {
  constexpr size_t kPlaces = 256, kBytes = 1 << 16;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" && entry.path().filename().string().starts_with("model"))
      files.insert(entry.path());
  std::vector<uint64_t> facts;
  for (const std::filesystem::path& path : files) {
    const MappedFile file(path);
    const std::string_view bytes = file.text();
    facts.push_back(bytes.size());
    const size_t places = std::clamp<size_t>(bytes.size() / kBytes, 1, kPlaces);
    for (size_t i = 0; i < places; i++) {
      const size_t last = bytes.size() - std::min(kBytes, bytes.size());  // the last position where a piece may begin
      const std::string_view piece = bytes.substr(last * i / std::max<size_t>(1, places - 1), kBytes);
      facts.push_back(XXH3_64bits(piece.data(), piece.size()));
    }
  }
  return fmt::format("{:016x}", XXH3_64bits(facts.data(), facts.size() * sizeof facts[0]));
}

class LossMetric : public SampleMetric {
 public:
  LossMetric(const std::filesystem::path& checkpoint, const Config& config, const RunDirectory& run, const Dataset& data)
      : model_(load_model(checkpoint)), data_(data) {
    const ModelShape& shape = model_.engine->shape();
    auto refuse = [&](const std::string& expected, const std::string& got) {
      throw UserError({checkpoint.string(), "metric loss", expected, got, "use another checkpoint"});
    };
    const bool bidirectional = row_of(config.objective.kind).families == Attending::both_ways;
    if (shape.family->bidirectional != bidirectional)
      refuse(bidirectional ? "a model that fills in masked tokens, like the run's objective"
                           : "a model that predicts the next token",
             std::string(shape.family->name));
    if (shape.window_shortens() && shape.window < data.sequence())
      refuse(fmt::format("a sliding_window of at least data.sequence ({})", data.sequence()), fmt::to_string(shape.window));
    if (shape.context < data.sequence())
      refuse(fmt::format("a context of at least data.sequence ({})", data.sequence()), fmt::to_string(shape.context));
    if (shape.vocab < data.vocab_size())
      refuse(fmt::format("a vocabulary of at least the data's {} tokens", data.vocab_size()), fmt::to_string(shape.vocab));
    if (const auto own = run.file("tokenizer.json"); model_.tokenizer && std::filesystem::exists(own))
      if (different_tokens(*load_tokenizer(own), *model_.tokenizer) > 0)
        refuse("a model with the tokenizer of the run", "a model with another tokenizer");
  }

  void compute(int64_t first, std::span<double> out) const override {
    const Batch batch = data_.sample_batch(first, std::ssize(out));
    const std::vector<float> losses = model_.engine->losses(batch);
    const auto T = static_cast<size_t>(data_.sequence());
    for (size_t row = 0; row < out.size(); row++) {
      double sum = 0;
      int64_t targets = 0;
      for (size_t p = row * T; p < row * T + T; p++) {
        if (batch.targets[p] == kNoTarget) continue;
        sum += losses[p];
        targets++;
      }
      out[row] = sum / static_cast<double>(std::max<int64_t>(1, targets));
    }
  }
  bool threaded() const override { return false; }  // the model uses threads of its own
  int64_t tokens_at_once() const override { return 2048; }

 private:
  LoadedModel model_;
  const Dataset& data_;
};

}  // namespace

std::string loss_named(const std::filesystem::path& checkpoint, const Config& config) {
  const auto warn = [](const std::string& line) { log::warn("{}", line); };
  std::string name = weights_fingerprint(find_model_folder(checkpoint, warn));
  if (config.data.attention == AttentionReach::document) name += ", by document";
  const ObjectiveRow& objective = row_of(config.objective.kind);
  if (objective.random)  // the seed decides which tokens are hidden or seen at once
    name += fmt::format(", {}, seed {}", objective.word, config.run.seed);
  if (objective.needs_mask)
    name += fmt::format(", {} of the {}", config.objective.mask_fraction, config.objective.whole_words ? "words" : "tokens");
  if (objective.moves_text)
    name += fmt::format(", {} of the tokens in spans of {}", config.objective.span_fraction, config.objective.span_length);
  return name;
}

std::unique_ptr<SampleMetric> make_loss_metric(const std::filesystem::path& checkpoint, const Config& config,
                                               const RunDirectory& run, const Dataset& data) {
  return std::make_unique<LossMetric>(checkpoint, config, run, data);
}

}  // namespace megalith
