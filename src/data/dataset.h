// (seed, step) -> batch. Sample i of sequence length T is tokens [i T, i T + T + 1) of the stream: T inputs
// and the token after them, which is the last one's target. Only a tail that does not fill a sequence is left
// out.
#pragma once
#include <cstdint>
#include <memory>

#include "config/config.h"
#include "data/batch.h"
#include "data/objectives.h"
#include "data/order.h"
#include "data/token_source.h"

namespace megalith {

class Dataset {
 public:
  // Where `valid` is empty, the last `settings.valid_fraction` of the samples are held out (at least one, if
  // the fraction is not 0), starting after the last training sample's target: no held-out token is ever
  // trained on. `batch` is the number of training samples there must be. Reads all tokens once to check them.
  // Throws UserError: too little data, an id beyond the vocabulary, an objective the vocabulary does not
  // allow.
  Dataset(TokenSources train, TokenSources valid, const DataSettings& settings,
          const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
          int64_t batch);

  // The sequences of step `step` (from 0); the same whatever was asked for before. Thread-safe.
  Batch train_batch(int64_t step, int64_t batch) const;
  // Held-out sequences [index * batch, (index + 1) * batch), fewer at the end; the same at every evaluation.
  Batch valid_batch(int64_t index, int64_t batch) const;

  int64_t sequence() const { return sequence_; }              // T
  int64_t samples() const { return order_.samples(); }        // training sequences an epoch
  int64_t valid_sequences() const { return valid_samples_; }  // 0: nothing is held out
  int64_t train_tokens() const { return samples() * sequence_; }

 private:
  void divide(double valid_fraction, int64_t batch);  // into training and validation
  Batch empty_batch(int64_t sequences) const;
  void write(const TokenSource& source, int64_t begin, const SampleKey& key, Batch& batch, int64_t row) const;

  ConcatenatedSource train_;
  ConcatenatedSource valid_;  // empty: validation reads the end of train_
  int64_t sequence_;
  uint64_t seed_;
  std::unique_ptr<TrainingObjective> objective_;
  int64_t valid_samples_ = 0;
  int64_t valid_begin_ = 0;  // token of its stream that validation starts at
  SampleOrder order_{1, 0};  // set by divide
};

}  // namespace megalith
