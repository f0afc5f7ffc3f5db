// Turns a sequence of tokens into inputs and targets. Each objective is one small class behind a common interface.
// Random choices depend on the sample and its epoch, never on how batches are cut.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "text/tokenizer.h"

namespace megalith {

// The properties of a vocabulary that objectives need.
struct VocabularyFacts {
  int64_t vocab_size = 0;  // ids are in [0, vocab_size)
  std::optional<int64_t> mask_token;
  std::function<bool(int64_t)> is_special;   // true if an id is never a target of masking; empty: none is special
  std::function<bool(int64_t)> starts_word;  // false for pieces that continue a word; empty: all ids start words
  std::optional<int64_t> end_token;    // ends a document in tokenized text
  std::vector<int64_t> sentinels;      // tokens that stand for missing text: <extra_id_0>, <extra_id_1>, ...
  std::vector<int64_t> before, after;  // the special tokens that the tokenizer puts around a text
};

// Borrows the tokenizer. It must exist until the objective is made, which stores the answers in tables.
VocabularyFacts facts_of(const Tokenizer& tokenizer);

// Identifies one use of one sample. It is the key of its random numbers.
struct SampleKey {
  uint64_t seed = 0;
  uint64_t sample = 0;  // number of the sample in the stream
  uint64_t epoch = 0;   // kValidation for held-out sequences, so that every evaluation has the same masks
  static constexpr uint64_t kValidation = ~uint64_t{0};
};

// The place in a batch for one sequence. Each span has T positions.
struct SequenceSlot {
  std::span<int64_t> ids;
  std::span<int64_t> targets;  // kNoTarget: no target; empty if the objective has no targets
  int64_t* prefix = nullptr;   // not null if and only if the objective has prefixes
  int64_t* tokens = nullptr;   // receives the number of tokens if that may be less than T
};

class TrainingObjective {
 public:
  explicit TrainingObjective(Objective kind) : row_(row_of(kind)) {}
  virtual ~TrainingObjective() = default;
  const ObjectiveRow& row() const { return row_; }
  // Number of different texts of a sample, and tokens of text in a sequence of `length` positions.
  virtual int64_t texts() const { return 1; }
  virtual int64_t text_length(int64_t length) const { return length; }
  // `tokens` has the text and the token after it. Objectives that compare sequences also accept a shorter text without
  // the next token. Thread-safe.
  virtual void write(std::span<const int64_t> tokens, const SampleKey& key,
                     const SequenceSlot& out) const = 0;

 private:
  const ObjectiveRow& row_;
};

// Throws UserError if the objective cannot work: masked without a mask token in the vocabulary, or prefix with sequences
// of one token.
std::unique_ptr<TrainingObjective> make_objective(const ObjectiveSettings& settings,
                                                  const VocabularyFacts& vocabulary, int64_t sequence);

// How the objective `spans` divides the positions of a sequence.
struct SpanCounts {
  int64_t tokens = 0;  // of text
  int64_t missing = 0; // of these, in spans
  int64_t spans = 0;
  int64_t input() const { return tokens - missing + spans; }  // sequence without the spans; each left a sentinel
  int64_t target() const { return missing + spans; }          // the spans, each after its sentinel
};
std::string sentinel_name(int64_t number);  // as in T5's tokenizers

// Chooses the most text that fits. `ends`: an end token follows input and target.
SpanCounts span_counts(const ObjectiveSettings& settings, int64_t length, bool ends);

// Returns the largest possible number of targets in a sequence.
int64_t most_targets(const ObjectiveSettings& settings, int64_t length);

}  // namespace megalith
