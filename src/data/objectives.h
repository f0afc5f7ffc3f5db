// What a sequence of tokens is turned into: inputs and targets. One small class an objective, behind one
// interface; what is random in one depends on the sample and its epoch, never on how batches are cut.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "config/config.h"
#include "text/tokenizer.h"

namespace megalith {

// What objectives need to know of a vocabulary.
struct VocabularyFacts {
  int64_t vocab_size = 0;  // ids are in [0, vocab_size)
  std::optional<int64_t> mask_token;
  std::function<bool(int64_t)> is_special;   // never a target of masking; empty: none is
  std::function<bool(int64_t)> starts_word;  // false for pieces that continue a word; empty: all do
};

// Borrows the tokenizer, which must live until the objective is made (the answers are kept in tables).
VocabularyFacts facts_of(const Tokenizer& tokenizer);

// Names one presentation of one sample: the key of its random numbers.
struct SampleKey {
  uint64_t seed = 0;
  uint64_t sample = 0;  // in the stream
  uint64_t epoch = 0;   // kValidation for held-out sequences: the same masks at every evaluation
  static constexpr uint64_t kValidation = ~uint64_t{0};
};

// Where one sequence of a batch is written; T positions each.
struct SequenceSlot {
  std::span<int64_t> ids;
  std::span<int64_t> targets;  // kNoTarget where there is none
  int64_t* prefix = nullptr;   // set exactly when the objective has prefixes
};

class TrainingObjective {
 public:
  explicit TrainingObjective(Objective kind) : row_(row_of(kind)) {}
  virtual ~TrainingObjective() = default;
  const ObjectiveRow& row() const { return row_; }
  // `tokens` are T + 1: the sequence and the token after it. Thread-safe.
  virtual void write(std::span<const int64_t> tokens, const SampleKey& key,
                     const SequenceSlot& out) const = 0;

 private:
  const ObjectiveRow& row_;
};

// Throws UserError where the objective cannot work: masked without a mask token in the vocabulary, prefix
// with sequences of one token.
std::unique_ptr<TrainingObjective> make_objective(const ObjectiveSettings& settings,
                                                  const VocabularyFacts& vocabulary, int64_t sequence);

// Positions of a sequence that have a target, at the most.
int64_t most_targets(const ObjectiveSettings& settings, int64_t length);

}  // namespace megalith
