// Losses of many sequences, several at once: equal lengths share a pass, shorter ones are filled up behind their end,
// which a causal model does not see.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"

namespace megalith {

struct ScoredSequence {
  std::vector<int64_t> ids;   // at least 2
  int64_t first_target = 1;   // ids from here on are predicted from those before them
  int64_t tag = 0;            // the caller's
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
  int64_t longest_ = 0;  // of those that wait
};

// UserError unless the model is one that continues text.
void check_predicts_next_token(const ModelShape& shape);
// UserError where an id is not one of the model's.
void check_ids(const std::vector<int64_t>& ids, int64_t vocab);

}  // namespace megalith
