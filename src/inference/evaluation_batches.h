// Computes the losses of many sequences, several in one pass. Shorter sequences are padded at the end, which a causal model
// does not see.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"

namespace megalith {

struct ScoredSequence {
  std::vector<int64_t> ids;   // at least 2
  int64_t first_target = 1;   // index of the first predicted token; each token is predicted from the tokens before it
  int64_t tag = 0;            // for the caller; not used here
};

class EvaluationBatches {
 public:
  // `result` gets every sequence with the sum of its targets' losses (nats), in the order in which they were added.
  using Result = std::function<void(const ScoredSequence&, double loss)>;
  EvaluationBatches(Engine& engine, Result result) : engine_(engine), result_(std::move(result)) {}

  void add(ScoredSequence sequence);
  void finish();

 private:
  void run();
  Engine& engine_;  // borrowed
  Result result_;
  std::vector<ScoredSequence> waiting_;
  int64_t longest_ = 0;  // ids of the longest sequence in `waiting_`
};

// Throws UserError unless the model predicts the next token.
void check_predicts_next_token(const ModelShape& shape);
// Throws UserError if an id is outside of the model's vocabulary.
void check_ids(const std::vector<int64_t>& ids, int64_t vocab);

}  // namespace megalith
