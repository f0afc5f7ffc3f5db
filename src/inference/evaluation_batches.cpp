#include "inference/evaluation_batches.h"

#include <algorithm>

#include "base/error.h"
#include "families/registry.h"

namespace megalith {
namespace {

constexpr int64_t kTokensAtOnce = 4096;  // enough to keep all cores busy, little memory

}  // namespace

void EvaluationBatches::add(ScoredSequence sequence) {
  const int64_t longest = std::max(longest_, std::ssize(sequence.ids));
  if (!waiting_.empty() && (std::ssize(waiting_) + 1) * longest > kTokensAtOnce) run();
  longest_ = std::max(longest_, std::ssize(sequence.ids));
  waiting_.push_back(std::move(sequence));
}

void EvaluationBatches::finish() {
  if (!waiting_.empty()) run();
}

void EvaluationBatches::run() {
  Batch batch;
  batch.sequences = std::ssize(waiting_);
  batch.length = longest_ - 1;
  for (const ScoredSequence& s : waiting_)
    for (int64_t t = 0; t < batch.length; t++) {
      const bool there = t + 1 < std::ssize(s.ids);
      batch.ids.push_back(there ? s.ids[static_cast<size_t>(t)] : 0);
      batch.targets.push_back(there && t + 1 >= s.first_target ? s.ids[static_cast<size_t>(t + 1)] : kNoTarget);
    }
  const std::vector<float> losses = engine_.losses(batch);
  for (size_t i = 0; i < waiting_.size(); i++) {
    double sum = 0;
    for (int64_t t = 0; t < batch.length; t++) sum += losses[i * static_cast<size_t>(batch.length) + static_cast<size_t>(t)];
    result_(waiting_[i], sum);
  }
  waiting_.clear();
  longest_ = 0;
}

void check_predicts_next_token(const ModelShape& shape) {
  if (shape.family->bidirectional)
    throw UserError({"", "model", next_token_models(), std::string(shape.family->name),
                     "perplexity is not defined for masked models"});
}

void check_ids(const std::vector<int64_t>& ids, int64_t vocab) {
  for (int64_t id : ids)
    if (id >= vocab)
      throw UserError({"", "tokenizer", fmt::format("ids below the model's vocabulary of {}", vocab), std::to_string(id),
                       "use the tokenizer of this model"});
}

}  // namespace megalith
