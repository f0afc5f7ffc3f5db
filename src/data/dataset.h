// Computes the batch of a step from (seed, step). Sample i of sequence length T is tokens [i T, i T + T + 1) of the
// stream: T inputs, and the next token, which is the target of the last input. Only a tail that does not fill a sequence
// is left out.
#pragma once
#include <algorithm>
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

// One of the data sets that training blends. Its sources form one stream.
struct TrainingSet {
  TokenSources sources;
  double weight = 1;  // above 0; the share of the samples is weight / sum of weights
};

class Dataset {
 public:
  // If `valid` is empty, the last samples of each training set are held out: `settings.valid_fraction` of them, at least one
  // if the fraction is not 0. They start after the target of the last training sample, so no held-out token is trained on.
  // `batch` is the number of training samples that must exist. A blended set needs only one, because it has its own epochs.
  // Reads a bounded number of tokens to check them; all others are checked when they are used. Throws UserError if there is
  // too little data or an id is outside the vocabulary. Also throws it if the vocabulary does not allow the objective.
  // `row_documents` above 0: a sample is not T tokens of the stream but this many documents, each a text of its own.
  Dataset(std::vector<TrainingSet> train, TokenSources valid, const DataSettings& settings,
          const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
          int64_t batch, int64_t row_documents = 0);
  // A dataset with one training set.
  Dataset(TokenSources train, TokenSources valid, const DataSettings& settings,
          const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
          int64_t batch, int64_t row_documents = 0);

  Dataset(const Dataset&) = delete;  // not movable either: the orders of samples refer to this object
  Dataset& operator=(const Dataset&) = delete;

  // From now on, training batches list the layers that drop tokens. The step's shape gives the number of tokens to keep.
  // With keep_special, batches also mark special tokens of the text. Throws UserError if the vocabulary has no special
  // tokens.
  void drop_tokens(std::vector<int64_t> layers, bool keep_special);

  // From now on, steps have the shapes of `shapes` and draw only samples that all filters admit. Every filter has one
  // value per training sample. Without this call, steps are `batch` whole samples from all samples.
  void follow(StepShapes shapes, std::span<const Filter> filters);

  // Returns the sequences of step `step` (from 0). They do not depend on earlier calls. Thread-safe. With data.attention:
  // document, marks where each position's document begins. The first token of the next document cannot be predicted. So a
  // position whose target would be that token has no target.
  Batch train_batch(int64_t step, int64_t batch) const;
  // Returns held-out sequences [index * batch, (index + 1) * batch), fewer at the end. They are the same at every
  // evaluation. If the loss compares sequences, there are only whole batches of a step. Sequences of several training sets are mixed, so that any part is a sample of all.
  Batch valid_batch(int64_t index, int64_t batch) const;

  // Returns the shape of step `step`.
  StepShape shape(int64_t step, int64_t batch) const {
    return shapes_ ? shapes_->shape(step) : StepShape{.samples = batch, .length = sequence_, .columns = columns()};
  }
  int64_t sequence() const { return sequence_; }              // T
  int64_t sample_length() const { return sample_length_; }    // tokens of text of a sample; of a row: at most
  int64_t vocab_size() const { return vocab_size_; }          // all ids are below it
  int64_t samples() const { return samples_; }                // number of different training sequences
  // Reads the text of a training sample. Metrics are computed from them and from the ends of documents.
  void sample_tokens(int64_t sample, std::vector<int64_t>& out) const;
  // Returns whole training samples [first, first + count) in the order of the data, with targets as in a validation.
  // They are the same at every call.
  Batch sample_batch(int64_t first, int64_t count) const;
  int64_t longest_document(int64_t sample) const;  // tokens of the longest part of a document inside the sample
  // Identifies the training samples. It changes with the text, the order of files, the division into documents, the
  // length and the split.
  std::string fingerprint() const;
  // Throws UserError if `saved`, the fingerprint in a checkpoint, differs.
  void check_same(const std::string& saved) const;
  int64_t never_admitted() const;  // training samples that no step of a curriculum admits
  int64_t valid_sequences() const { return valid_samples_ * columns(); }  // 0: nothing is held out
  int64_t train_tokens() const;
  // Passes over each training set after `steps` steps of `batch` sequences. If a filter is used, counts passes over the
  // samples that it admits.
  std::vector<double> epochs_after(int64_t steps, int64_t batch) const;
  // Returns data for the checkpoint that says when the filters admit which samples; null without filters.
  // check_admissions throws UserError if this data is different in the checkpoint. So a run does not continue with other
  // difficulties, which would change the order of samples.
  nlohmann::json admissions() const;
  void check_admissions(const nlohmann::json& saved) const;

 private:
  struct TrainingStream {  // one training set
    ConcatenatedSource stream;
    SampleOrder order;
    int64_t first_sample;  // number of its first sample, counted over all sets; key of random numbers
    int64_t held_out;      // samples held out for validation
    int64_t held_begin;    // where the held-out samples start: see Source::begin
    std::unique_ptr<AdmittedOrder> admitted = nullptr;  // used instead of `order` if a curriculum filters
  };
  struct Source {  // position of a sample
    const ConcatenatedSource& stream;
    int64_t begin;  // of its tokens; of a row: its number
  };

  void divide(TokenSources sources, double valid_fraction, int64_t needed, const std::string& purpose);
  Source valid_source(int64_t sample) const;
  struct Drawn {  // one sample of a training step
    const TrainingStream& part;
    EpochSample at;
  };
  int64_t samples_before(int64_t step, int64_t batch) const;  // samples used by all earlier steps
  std::vector<Drawn> draw(int64_t step, int64_t batch) const;
  const TrainingStream& stream_of(int64_t sample) const;
  int64_t samples_in(const ConcatenatedSource& stream, int64_t spare_tokens = 0) const;
  // Position of sample `number` of a stream, from its beginning or from the first held-out sample.
  int64_t place_of(int64_t number) const { return row_documents_ > 0 ? number : number * sample_length_; }
  int64_t tokens_of(const ConcatenatedSource& stream, int64_t samples) const;  // tokens of the first samples
  std::vector<int64_t> row_text(const ConcatenatedSource& stream, int64_t document) const;
  // Returns one of the different texts of a sample and, of a window, the token after it.
  std::vector<int64_t> text_of(const Source& source, int64_t number, int64_t length) const;
  SequenceSlot slot(Batch& batch, int64_t row) const;
  Batch empty_batch(int64_t sequences, int64_t length) const;
  // Fills the rows of one sample, from `row` on, with the first tokens of the source.
  void write(const Source& source, const SampleKey& key, Batch& batch, int64_t row) const;
  void mark_documents(const Source& source, std::span<int64_t> document_begin,
                      std::span<int64_t> targets) const;
  void check_some(const ConcatenatedSource& stream) const;
  void check(const ConcatenatedSource& stream, int64_t begin, std::span<const int64_t> ids) const;

  std::vector<TrainingStream> streams_;
  std::optional<Blend> blend_;  // if there are several training sets
  ConcatenatedSource valid_;    // empty: validation reads the held-out samples of the training sets
  int64_t columns() const { return comparison_.sequences(); }  // sequences of a sample
  int64_t different_texts() const { return std::max(objective_->texts(), row_documents_); }  // of a sample

  int64_t sequence_, sample_length_ = 0;
  int64_t validated_together_ = 1;  // held-out samples come in multiples of this
  uint64_t seed_;
  int64_t vocab_size_;
  AttentionReach attention_;
  std::unique_ptr<TrainingObjective> objective_;
  Comparison comparison_;
  int64_t row_documents_ = 0;  // documents of a sample; 0: samples are windows of the stream
  std::optional<int64_t> end_token_;
  int64_t samples_ = 0, valid_samples_ = 0;
  std::optional<StepShapes> shapes_;
  std::vector<int64_t> dropping_layers_;
  bool keep_special_ = false;
  std::vector<uint8_t> special_;  // by id; empty: the vocabulary does not say which tokens are special
  std::optional<Permutation> valid_order_;  // mixes the held-out samples of several training sets
};

}  // namespace megalith
