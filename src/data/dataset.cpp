#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace megalith {
namespace {

// Returns how many of `samples` are held out: a multiple of `unit`.
int64_t held_out_of(int64_t samples, double fraction, int64_t unit) {
  if (fraction <= 0) return 0;
  return unit * std::max<int64_t>(1, std::llround(fraction * static_cast<double>(samples) / static_cast<double>(unit)));
}

[[noreturn]] void too_little(const TokenSource& source, const char* key, const std::string& purpose,
                             int64_t needed, const char* hint) {
  throw UserError({.where = source.name(),
                   .key = key,
                   .expected = fmt::format("at least {} tokens for {}", needed, purpose),
                   .got = fmt::to_string(source.tokens()),
                   .hint = hint});
}

[[noreturn]] void too_few_rows(const TokenSource& source, const char* key, const std::string& purpose, int64_t needed,
                               int64_t rows) {
  throw UserError({.where = source.name(),
                   .key = key,
                   .expected = fmt::format("at least {} rows for {}", needed, purpose),
                   .got = fmt::to_string(rows),
                   .hint = "use a smaller train.batch, or more data"});
}

std::vector<TrainingSet> one_set(TokenSources sources) {
  std::vector<TrainingSet> sets;
  sets.push_back({std::move(sources)});
  return sets;
}

}  // namespace

Dataset::Dataset(std::vector<TrainingSet> train, TokenSources valid, const DataSettings& settings,
                 const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
                 int64_t batch, int64_t row_documents)
    : valid_(std::move(valid)),
      sequence_(settings.sequence),
      seed_(seed),
      vocab_size_(vocabulary.vocab_size),
      attention_(settings.attention),
      objective_(make_objective(objective, vocabulary, settings.sequence)),
      comparison_(objective.comparison()),
      row_documents_(row_documents),
      end_token_(vocabulary.end_token) {
  MEGALITH_ASSERT(row_documents_ == 0 || comparison_.any());
  sample_length_ = different_texts() * objective_->text_length(sequence_);
  if (comparison_.any()) validated_together_ = batch;
  for (int64_t id = 0; id < vocab_size_ && vocabulary.is_special; id++) special_.push_back(vocabulary.is_special(id));
  MEGALITH_ASSERT(sequence_ > 0 && batch > 0, "sequence {}, batch {}", sequence_, batch);
  const bool own_valid = !valid_.sources().empty(), blended = train.size() > 1;
  const double fraction = own_valid ? 0 : settings.valid_fraction;
  std::vector<double> weights;
  for (TrainingSet& set : train) {
    weights.push_back(set.weight);
    divide(std::move(set.sources), fraction, blended ? 1 : batch,
           blended ? fmt::format("one sequence (data.sequence {}", sequence_)
                   : fmt::format("one batch (train.batch {} x data.sequence {}", batch, sequence_));
  }
  if (blended) blend_.emplace(weights, seed_);
  if (blended && valid_samples_ > 0) valid_order_.emplace(static_cast<uint64_t>(valid_samples_), seed_);
  if (own_valid) {
    valid_samples_ = samples_in(valid_) / validated_together_ * validated_together_;
    if (valid_samples_ == 0 && row_documents_ > 0)
      too_few_rows(valid_, "data.valid", fmt::format("one batch (train.batch {})", batch), batch, samples_in(valid_));
    if (valid_samples_ == 0)
      too_little(valid_, "data.valid",
                 validated_together_ > 1 ? fmt::format("one batch, whose sequences are compared (train.batch {})", batch)
                                         : fmt::format("one sequence (data.sequence {})", sequence_),
                 validated_together_ * sample_length_ + 1,
                 "use a smaller data.sequence, more text, or data.valid_fraction instead");
  }
  for (const TrainingStream& part : streams_) check_some(part.stream);
  check_some(valid_);
}

Dataset::Dataset(TokenSources train, TokenSources valid, const DataSettings& settings,
                 const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
                 int64_t batch, int64_t row_documents)
    : Dataset(one_set(std::move(train)), std::move(valid), settings, objective, vocabulary, seed, batch, row_documents) {}

// A window has one token more than its text, and overlaps the next window by this token.
int64_t Dataset::samples_in(const ConcatenatedSource& stream, int64_t spare_tokens) const {
  if (row_documents_ == 0) return std::max<int64_t>(0, (stream.tokens() - spare_tokens - 1) / sample_length_);
  if (stream.documents() % row_documents_ != 0)
    throw UserError({stream.name(), "objective.columns", fmt::format("a multiple of {} documents: one for each field", row_documents_),
                     fmt::format("{}", stream.documents()), "make the token shards from JSON lines with these fields"});
  return stream.documents() / row_documents_;
}

// Divides one training set into training and validation samples.
void Dataset::divide(TokenSources sources, double fraction, int64_t needed, const std::string& purpose) {
  MEGALITH_ASSERT(fraction < 1, "valid_fraction {}", fraction);
  ConcatenatedSource stream(std::move(sources));
  // A split costs one token, as validation starts after the target of the last training sample.
  const int64_t boundary = fraction > 0 && row_documents_ == 0 ? 1 : 0;
  const int64_t samples = samples_in(stream, boundary);
  const auto held_of = [&](int64_t all) { return held_out_of(all, fraction, validated_together_); };
  const int64_t held = std::min(samples, held_of(samples));
  if (samples - held < needed) {
    int64_t enough = needed + held_of(needed);
    while (enough - held_of(enough) < needed) enough++;
    if (row_documents_ > 0) too_few_rows(stream, "data.train", purpose + ")", enough, samples);
    too_little(stream, "data.train", purpose + (fraction > 0 ? ", with data.valid_fraction held out)" : ")"),
               enough * sample_length_ + 1 + boundary, "use a smaller data.sequence or train.batch, or more text");
  }
  const int64_t trained = samples - held;
  streams_.push_back({std::move(stream), SampleOrder(trained, seed_, streams_.size()), samples_, held,
                    place_of(trained) + boundary});
  samples_ += trained;
  valid_samples_ += held;
}

// Checks a large shard at many places, including its ends. So tokens of another tokenizer are found at once, and a run
// begins within seconds.
void Dataset::check_some(const ConcatenatedSource& stream) const {
  constexpr int64_t kChunk = 1 << 16, kPlaces = 512;
  std::vector<int64_t> chunk;
  const int64_t tokens = stream.tokens(), chunks = (tokens + kChunk - 1) / kChunk;
  const int64_t places = std::min(chunks, kPlaces);
  for (int64_t i = 0; i < places; i++) {
    const int64_t number =
        places < 2 ? 0 : static_cast<int64_t>(static_cast<__int128>(chunks - 1) * i / (places - 1));
    chunk.resize(static_cast<size_t>(std::min(kChunk, tokens - number * kChunk)));
    stream.copy(number * kChunk, chunk);
    check(stream, number * kChunk, chunk);
  }
}

void Dataset::check(const ConcatenatedSource& stream, int64_t begin, std::span<const int64_t> ids) const {
  const auto outside = [limit = static_cast<uint64_t>(vocab_size_)](int64_t id) {
    return static_cast<uint64_t>(id) >= limit;  // negative ids become large numbers
  };
  uint64_t any = 0;  // without a branch, so that the loop vectorises: nearly all ids are good
  for (int64_t id : ids) any |= outside(id);
  if (!any) return;
  auto bad = std::ranges::find_if(ids, outside);
  const auto place = stream.locate(begin + (bad - ids.begin()));
  throw UserError({.where = place.source.name(),
                   .key = fmt::format("token {}", place.inside),
                   .expected = fmt::format("an id below the vocabulary size ({})", vocab_size_),
                   .got = fmt::to_string(*bad),
                   .hint = "another tokenizer made these tokens: tokenize the text again with data.tokenizer, "
                           "or set model.vocab to the vocabulary size of that tokenizer"});
}

Batch Dataset::empty_batch(int64_t sequences, int64_t length) const {
  Batch batch;
  batch.sequences = sequences;
  batch.length = length;
  batch.ids.resize(static_cast<size_t>(sequences * length));
  batch.comparison = comparison_;
  if (!comparison_.any()) batch.targets.resize(batch.ids.size());
  if (row_documents_ > 0) batch.tokens.resize(static_cast<size_t>(sequences));
  if (objective_->row().has_prefix) batch.prefix.resize(static_cast<size_t>(sequences));
  if (attention_ == AttentionReach::document) batch.document_begin.resize(batch.ids.size());
  return batch;
}

std::vector<int64_t> Dataset::row_text(const ConcatenatedSource& stream, int64_t document) const {
  const int64_t begin = stream.document_begin(document), count = stream.document_begin(document + 1) - begin;
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  stream.copy(begin, tokens);
  check(stream, begin, tokens);
  if (end_token_ && !tokens.empty() && tokens.back() == *end_token_) tokens.pop_back();
  return tokens;
}

std::vector<int64_t> Dataset::text_of(const Source& source, int64_t number, int64_t length) const {
  if (row_documents_ > 0) return row_text(source.stream, source.begin * row_documents_ + number);
  const int64_t text = objective_->text_length(length), begin = source.begin + number * text;
  std::vector<int64_t> tokens(static_cast<size_t>(text) + 1);
  source.stream.copy(begin, tokens);
  check(source.stream, begin, tokens);
  return tokens;
}

SequenceSlot Dataset::slot(Batch& batch, int64_t row) const {
  const auto at = static_cast<size_t>(row), length = static_cast<size_t>(batch.length);
  const auto part = [&](std::vector<int64_t>& of) { return of.empty() ? std::span<int64_t>() : std::span(of).subspan(at * length, length); };
  return {.ids = part(batch.ids),
          .targets = part(batch.targets),
          .prefix = batch.prefix.empty() ? nullptr : &batch.prefix[at],
          .tokens = batch.tokens.empty() ? nullptr : &batch.tokens[at]};
}

void Dataset::write(const Source& source, const SampleKey& key, Batch& batch, int64_t row) const {
  std::vector<int64_t> tokens;
  for (int64_t column = 0; column < columns(); column++) {
    if (column < different_texts()) tokens = text_of(source, column, batch.length);  // else the text of the column before
    objective_->write(tokens, key, slot(batch, row + column));
  }
  const auto length = static_cast<size_t>(batch.length), first = static_cast<size_t>(row) * length;
  if (!batch.document_begin.empty())
    mark_documents(source, std::span(batch.document_begin).subspan(first, length),
                   std::span(batch.targets).subspan(first, length));
  if (batch.dropping.always.empty()) return;
  // Look at the tokens of the text, not at the inputs. A mask token in the inputs is not special, because the model must
  // learn the word that it replaces.
  for (size_t p = 0; p < length; p++) batch.dropping.always[first + p] = special_[static_cast<size_t>(tokens[p])];
}

void Dataset::mark_documents(const Source& source, std::span<int64_t> document_begin,
                             std::span<int64_t> targets) const {
  const auto length = static_cast<int64_t>(targets.size());
  for (int64_t p = 0; p < length;) {
    const int64_t end = source.stream.document_end(source.begin + p) - source.begin;  // end of p's document
    const int64_t inside = std::min(end, length);
    std::fill(document_begin.begin() + p, document_begin.begin() + inside, p);
    if (end <= length && objective_->row().predicts_next) targets[static_cast<size_t>(end - 1)] = kNoTarget;
    p = inside;
  }
}

void Dataset::drop_tokens(std::vector<int64_t> layers, bool keep_special) {
  if (keep_special && std::ranges::find(special_, true) == special_.end())
    throw UserError({"", "token_dropping.keep_special", "a tokenizer with special tokens",
                     special_.empty() ? "no tokenizer (token shards do not say which tokens are special)"
                                      : "a tokenizer without special tokens",
                     "set data.tokenizer, or remove keep_special"});
  dropping_layers_ = std::move(layers);
  keep_special_ = keep_special;
}

void Dataset::follow(StepShapes shapes, std::span<const Filter> filters) {
  shapes_ = std::move(shapes);
  for (size_t set = 0; set < streams_.size() && !filters.empty(); set++) {
    TrainingStream& part = streams_[set];
    auto draws_before = [this, set](int64_t step) {
      const int64_t samples = shapes_->samples_before(step);
      return blend_ ? blend_->drawn(set, samples) : samples;
    };
    const std::string where = blend_ ? part.stream.name() : "";
    part.admitted = std::make_unique<AdmittedOrder>(
        admission_steps(filters, part.first_sample, part.order.samples(), *shapes_, where), draws_before, seed_, set);
  }
}

int64_t Dataset::samples_before(int64_t step, int64_t batch) const {
  return shapes_ ? shapes_->samples_before(step) : step * batch;
}

std::vector<Dataset::Drawn> Dataset::draw(int64_t step, int64_t batch) const {
  std::vector<std::vector<EpochSample>> admitted;  // by training set
  for (const TrainingStream& part : streams_)
    admitted.push_back(part.admitted ? part.admitted->draw(step) : std::vector<EpochSample>{});
  std::vector<Drawn> drawn;
  std::vector<size_t> used(streams_.size());
  const int64_t end = samples_before(step + 1, batch);
  for (int64_t position = samples_before(step, batch); position < end; position++) {
    const Blend::Place place = blend_ ? blend_->at(position) : Blend::Place{0, position};
    const TrainingStream& part = streams_[place.set];
    drawn.push_back({part, part.admitted ? admitted[place.set][used[place.set]++] : part.order.at(place.index)});
  }
  return drawn;
}

Batch Dataset::train_batch(int64_t step, int64_t batch) const {
  MEGALITH_ASSERT(step >= 0 && batch > 0, "step {}, batch {}", step, batch);
  const StepShape shape = this->shape(step, batch);
  Batch result = empty_batch(shape.sequences(), shape.length);
  if (shape.kept() > 0) result.dropping = {shape.kept(), dropping_layers_, {}};
  if (shape.kept() > 0 && keep_special_) result.dropping.always.resize(result.ids.size());
  int64_t row = 0;
  for (const auto& [part, at] : draw(step, batch)) {
    const auto sample = static_cast<uint64_t>(part.first_sample + at.sample), epoch = static_cast<uint64_t>(at.epoch);
    // The first epoch uses the beginnings of samples. Later epochs skip a random number of tokens. Otherwise a
    // curriculum that stays short for long would repeat the same beginnings.
    const auto spare = static_cast<uint64_t>(shape.spare);
    const bool elsewhere = spare > 0 && epoch > 0;
    const uint64_t skipped = elsewhere ? Philox(seed_, RandomUse::reshape_offset, sample, epoch).below(0, spare + 1) : 0;
    const int64_t begin = place_of(at.sample) + (row_documents_ > 0 ? 0 : static_cast<int64_t>(skipped));
    for (int64_t piece = 0; piece < shape.pieces; piece++, row += columns())  // each piece has its own random numbers
      write({part.stream, begin + piece * objective_->texts() * objective_->text_length(shape.length)},
            {seed_, sample ^ static_cast<uint64_t>(piece) << 48, epoch}, result, row);
  }
  result.trim();
  return result;
}

Dataset::Source Dataset::valid_source(int64_t sample) const {
  if (!valid_.sources().empty()) return {valid_, place_of(sample)};
  if (valid_order_) sample = static_cast<int64_t>((*valid_order_)(static_cast<uint64_t>(sample)));
  auto part = streams_.begin();
  for (; sample >= part->held_out; part++) sample -= part->held_out;
  return {part->stream, part->held_begin + place_of(sample)};
}

Batch Dataset::valid_batch(int64_t index, int64_t batch) const {
  MEGALITH_ASSERT(batch % columns() == 0, "{} sequences, {} of a sample", batch, columns());
  const int64_t samples = batch / columns(), begin = index * samples, end = std::min(begin + samples, valid_samples_);
  MEGALITH_ASSERT(index >= 0 && batch > 0 && begin < end, "batch {} x {} of {}", index, samples, valid_samples_);
  Batch result = empty_batch((end - begin) * columns(), sequence_);
  for (int64_t sample = begin; sample < end; sample++) {
    const SampleKey key{seed_, static_cast<uint64_t>(sample), SampleKey::kValidation};
    write(valid_source(sample), key, result, (sample - begin) * columns());
  }
  result.trim();
  return result;
}

std::vector<double> Dataset::epochs_after(int64_t steps, int64_t batch) const {
  const int64_t drawn_of_all = samples_before(steps, batch);
  std::vector<double> epochs;
  for (size_t i = 0; i < streams_.size(); i++) {
    const int64_t drawn = blend_ ? blend_->drawn(i, drawn_of_all) : drawn_of_all;
    epochs.push_back(streams_[i].admitted ? streams_[i].admitted->passes(steps)
                                        : static_cast<double>(drawn) / static_cast<double>(streams_[i].order.samples()));
  }
  return epochs;
}

nlohmann::json Dataset::admissions() const {
  nlohmann::json marks;
  for (const TrainingStream& part : streams_)
    if (part.admitted) marks.push_back(part.admitted->fingerprint());
  return marks;
}

void Dataset::check_admissions(const nlohmann::json& saved) const {
  if (saved == admissions()) return;
  throw UserError({"", "curriculum", "the difficulties that the run started with", "different ones",
                   "restore the metric's file or checkpoint, use the version of megalith that started the run, or start "
                   "a new run"});
}

}  // namespace megalith
