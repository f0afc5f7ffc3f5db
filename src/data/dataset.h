// (seed, step) -> batch. Sample i of sequence length T is tokens [i T, i T + T + 1) of the stream: T inputs
// and the token after them, which is the last one's target. Only a tail that does not fill a sequence is left
// out.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "config/config.h"
#include "data/admitted_order.h"
#include "data/batch.h"
#include "data/blend.h"
#include "data/curriculum.h"
#include "data/objectives.h"
#include "data/order.h"
#include "data/permutation.h"
#include "data/step_shapes.h"
#include "data/token_source.h"

namespace megalith {

// One of the data sets that training blends; its sources are one stream.
struct TrainingSet {
  TokenSources sources;
  double weight = 1;  // above 0; shares of the samples are weight / sum of weights
};

class Dataset {
 public:
  // Where `valid` is empty, the last `settings.valid_fraction` of each training set's samples are held out
  // (at least one, if the fraction is not 0), starting after the last training sample's target: no held-out
  // token is ever trained on. `batch` is the number of training samples there must be; a set that is blended
  // needs only one, as it has epochs of its own. Reads a bounded number of tokens to check them; all others
  // are checked when they are used. Throws UserError: too little data, an id beyond the vocabulary, an
  // objective the vocabulary does not allow.
  Dataset(std::vector<TrainingSet> train, TokenSources valid, const DataSettings& settings,
          const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
          int64_t batch);
  // One training set.
  Dataset(TokenSources train, TokenSources valid, const DataSettings& settings,
          const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
          int64_t batch);

  Dataset(const Dataset&) = delete;  // nor moved: orders of samples refer to it
  Dataset& operator=(const Dataset&) = delete;

  // From now on training batches say which layers drop tokens, as many as the shape of the step says; with keep_special
  // also which tokens of the text are special. UserError where none of the vocabulary is.
  void drop_tokens(std::vector<int64_t> layers, bool keep_special);

  // From now on steps are shaped as `shapes` says and draw only what all filters admit. Every filter has one value a
  // training sample. Without this, steps are `batch` whole samples of all.
  void follow(StepShapes shapes, std::span<const Filter> filters);

  // The sequences of step `step` (from 0); the same whatever was asked for before. Thread-safe. With
  // data.attention: document, says where each position's document begins, and a document's last position has
  // no target where that would be the next document's first token: nothing it sees could tell it.
  Batch train_batch(int64_t step, int64_t batch) const;
  // Held-out sequences [index * batch, (index + 1) * batch), fewer at the end; the same at every evaluation.
  // Those of several training sets come mixed, so that a part of them is a sample of all.
  Batch valid_batch(int64_t index, int64_t batch) const;

  // How step `step` is shaped.
  StepShape shape(int64_t step, int64_t batch) const {
    return shapes_ ? shapes_->shape(step) : StepShape{batch, 1, sequence_};
  }
  int64_t sequence() const { return sequence_; }              // T
  int64_t vocab_size() const { return vocab_size_; }          // ids are below it
  int64_t samples() const { return samples_; }                // training sequences, each once
  // The tokens of a training sample, T of them, and where its documents end: what metrics are computed from.
  void sample_tokens(int64_t sample, std::span<int64_t> out) const;
  // Training samples [first, first + count) whole, in the order of the data, with targets as at a validation: the same
  // whenever they are asked for.
  Batch sample_batch(int64_t first, int64_t count) const;
  int64_t longest_document(int64_t sample) const;  // tokens of the longest part of one inside the sample
  // Names the training samples: another text, order of files, division into documents, length or split has another.
  std::string fingerprint() const;
  int64_t never_admitted() const;  // training samples that no step of a curriculum admits
  int64_t valid_sequences() const { return valid_samples_; }  // 0: nothing is held out
  int64_t train_tokens() const { return samples() * sequence_; }
  // Passes over each training set, or over what a filter admits of it, that `steps` steps of `batch` sequences make.
  std::vector<double> epochs_after(int64_t steps, int64_t batch) const;
  // What a checkpoint has to carry so that a run does not go on with other difficulties, whose order is another: a mark of
  // when filters admit what; null where none filters. UserError where it is not that of the checkpoint.
  nlohmann::json admissions() const;
  void check_admissions(const nlohmann::json& saved) const;

 private:
  struct TrainingStream {  // a training set
    ConcatenatedSource stream;
    SampleOrder order;
    int64_t first_sample;  // number of its first sample, counted through all sets: keys random numbers
    int64_t held_out;      // samples kept for validation
    int64_t held_begin;    // token of the stream that they start at
    std::unique_ptr<AdmittedOrder> admitted = nullptr;  // in place of `order` where a curriculum filters
  };
  struct Source {  // where a sample's tokens are
    const ConcatenatedSource& stream;
    int64_t begin;
  };

  void divide(TokenSources sources, double valid_fraction, int64_t needed, const std::string& purpose);
  Source valid_source(int64_t sample) const;
  struct Drawn {  // a sample of a training step
    const TrainingStream& part;
    EpochSample at;
  };
  int64_t samples_before(int64_t step, int64_t batch) const;  // that the steps before it took
  std::vector<Drawn> draw(int64_t step, int64_t batch) const;
  const TrainingStream& stream_of(int64_t sample) const;
  Batch empty_batch(int64_t sequences, int64_t length) const;
  // One row, as long as the batch says, from the source's beginning on.
  void write(const Source& source, const SampleKey& key, Batch& batch, int64_t row) const;
  void mark_documents(const Source& source, std::span<int64_t> document_begin,
                      std::span<int64_t> targets) const;
  void check_some(const ConcatenatedSource& stream) const;
  void check(const ConcatenatedSource& stream, int64_t begin, std::span<const int64_t> ids) const;

  std::vector<TrainingStream> streams_;
  std::optional<Blend> blend_;  // of several parts
  ConcatenatedSource valid_;    // empty: validation reads the ends of the parts
  int64_t sequence_;
  uint64_t seed_;
  int64_t vocab_size_;
  AttentionReach attention_;
  std::unique_ptr<TrainingObjective> objective_;
  int64_t samples_ = 0, valid_samples_ = 0;
  std::optional<StepShapes> shapes_;
  std::vector<int64_t> dropping_layers_;
  bool keep_special_ = false;
  std::vector<uint8_t> special_;  // by id; empty: the vocabulary does not say
  std::optional<Permutation> valid_order_;  // of several parts' held-out samples
};

}  // namespace megalith
