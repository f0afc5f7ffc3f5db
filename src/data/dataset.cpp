#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace megalith {
namespace {

// Throws at the first id outside [0, vocab_size). Streams, so that data larger than memory is fine.
void check_ids(const ConcatenatedSource& stream, int64_t vocab_size) {
  constexpr int64_t kChunk = 1 << 16;
  std::vector<int64_t> chunk(kChunk);
  for (const auto& source : stream.sources()) {
    for (int64_t begin = 0; begin < source->tokens(); begin += kChunk) {
      chunk.resize(static_cast<size_t>(std::min(kChunk, source->tokens() - begin)));
      source->copy(begin, chunk);
      const auto outside = [limit = static_cast<uint64_t>(vocab_size)](int64_t id) {
        return static_cast<uint64_t>(id) >= limit;  // negative ids become large ones
      };
      uint64_t any = 0;  // without a branch, so that it vectorises: nearly all chunks are good
      for (int64_t id : chunk) any |= outside(id);
      if (!any) continue;
      auto bad = std::ranges::find_if(chunk, outside);
      throw UserError({.where = source->name(),
                       .key = fmt::format("token {}", begin + (bad - chunk.begin())),
                       .expected = fmt::format("an id below the vocabulary's size, {}", vocab_size),
                       .got = fmt::to_string(*bad),
                       .hint = "these tokens were made with another tokenizer: tokenize the text again with "
                               "data.tokenizer, or set the model's vocabulary to theirs"});
    }
    chunk.resize(kChunk);
  }
}

// Samples of T + 1 tokens that overlap by one.
int64_t samples_in(int64_t tokens, int64_t sequence) {
  return std::max<int64_t>(0, (tokens - 1) / sequence);
}

// How many of `samples` are held out.
int64_t held_out(int64_t samples, double fraction) {
  if (fraction <= 0) return 0;
  return std::max<int64_t>(1, std::llround(fraction * static_cast<double>(samples)));
}

[[noreturn]] void too_little(const TokenSource& source, const char* key, const std::string& purpose,
                             int64_t needed, const char* hint) {
  throw UserError({.where = source.name(),
                   .key = key,
                   .expected = fmt::format("at least {} tokens for {}", needed, purpose),
                   .got = fmt::to_string(source.tokens()),
                   .hint = hint});
}

}  // namespace

Dataset::Dataset(TokenSources train, TokenSources valid, const DataSettings& settings,
                 const ObjectiveSettings& objective, const VocabularyFacts& vocabulary, uint64_t seed,
                 int64_t batch)
    : train_(std::move(train)),
      valid_(std::move(valid)),
      sequence_(settings.sequence),
      seed_(seed),
      objective_(make_objective(objective, vocabulary, settings.sequence)) {
  MEGALITH_ASSERT(sequence_ > 0 && batch > 0, "sequence {}, batch {}", sequence_, batch);
  divide(settings.valid_fraction, batch);
  check_ids(train_, vocabulary.vocab_size);
  check_ids(valid_, vocabulary.vocab_size);
}

void Dataset::divide(double valid_fraction, int64_t batch) {
  const bool own_valid = !valid_.sources().empty();
  const double fraction = own_valid ? 0 : valid_fraction;
  MEGALITH_ASSERT(fraction < 1, "valid_fraction {}", fraction);
  // A split costs one token: validation starts after the last training sample's target.
  const int64_t boundary = fraction > 0 ? 1 : 0;
  const int64_t samples = samples_in(train_.tokens() - boundary, sequence_);
  const int64_t held = std::min(samples, held_out(samples, fraction));
  if (samples - held < batch) {
    int64_t enough = batch + held_out(batch, fraction);
    while (enough - held_out(enough, fraction) < batch) enough++;
    too_little(train_, "data.train",
               fmt::format("one batch (train.batch {} x data.sequence {}{})", batch, sequence_,
                           fraction > 0 ? ", with data.valid_fraction held out" : ""),
               enough * sequence_ + 1 + boundary, "use a smaller data.sequence or train.batch, or more text");
  }
  order_ = SampleOrder(samples - held, seed_);
  valid_samples_ = own_valid ? samples_in(valid_.tokens(), sequence_) : held;
  valid_begin_ = own_valid ? 0 : (samples - held) * sequence_ + boundary;
  if (own_valid && valid_samples_ == 0)
    too_little(valid_, "data.valid", fmt::format("one sequence (data.sequence {})", sequence_), sequence_ + 1,
               "use a smaller data.sequence, more text, or data.valid_fraction instead");
}

Batch Dataset::empty_batch(int64_t sequences) const {
  Batch batch;
  batch.sequences = sequences;
  batch.length = sequence_;
  batch.ids.resize(static_cast<size_t>(sequences * sequence_));
  batch.targets.resize(batch.ids.size());
  if (objective_->has_prefix()) batch.prefix.resize(static_cast<size_t>(sequences));
  return batch;
}

void Dataset::write(const TokenSource& source, int64_t begin, const SampleKey& key, Batch& batch,
                    int64_t row) const {
  const auto length = static_cast<size_t>(sequence_), first = static_cast<size_t>(row) * length;
  std::vector<int64_t> tokens(length + 1);
  source.copy(begin, tokens);
  objective_->write(tokens, key,
                    {.ids = std::span(batch.ids).subspan(first, length),
                     .targets = std::span(batch.targets).subspan(first, length),
                     .prefix = batch.prefix.empty() ? nullptr : &batch.prefix[static_cast<size_t>(row)]});
}

Batch Dataset::train_batch(int64_t step, int64_t batch) const {
  MEGALITH_ASSERT(step >= 0 && batch > 0, "step {}, batch {}", step, batch);
  Batch result = empty_batch(batch);
  for (int64_t row = 0; row < batch; row++) {
    auto [epoch, sample] = order_.at(step * batch + row);
    const SampleKey key{seed_, static_cast<uint64_t>(sample), static_cast<uint64_t>(epoch)};
    write(train_, sample * sequence_, key, result, row);
  }
  return result;
}

Batch Dataset::valid_batch(int64_t index, int64_t batch) const {
  const int64_t begin = index * batch, end = std::min(begin + batch, valid_samples_);
  MEGALITH_ASSERT(index >= 0 && batch > 0 && begin < end, "batch {} x {} of {}", index, batch,
                  valid_samples_);
  Batch result = empty_batch(end - begin);
  const TokenSource& source = valid_.sources().empty() ? train_ : valid_;
  for (int64_t sample = begin; sample < end; sample++) {
    const SampleKey key{seed_, static_cast<uint64_t>(sample), SampleKey::kValidation};
    write(source, valid_begin_ + sample * sequence_, key, result, sample - begin);
  }
  return result;
}

}  // namespace megalith
