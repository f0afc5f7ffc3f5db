// Single training samples of a data set, in the order of the data. Metrics are computed from them.
#include <xxhash.h>

#include <algorithm>

#include "base/error.h"
#include "data/dataset.h"

namespace megalith {

const Dataset::TrainingStream& Dataset::stream_of(int64_t sample) const {
  auto after = std::ranges::upper_bound(streams_, sample, {}, &TrainingStream::first_sample);
  return *std::prev(after);
}

void Dataset::sample_tokens(int64_t sample, std::vector<int64_t>& out) const {
  const TrainingStream& part = stream_of(sample);
  const int64_t number = sample - part.first_sample;
  out.clear();
  for (int64_t document = 0; document < row_documents_; document++)
    std::ranges::copy(row_text(part.stream, number * row_documents_ + document), std::back_inserter(out));
  if (row_documents_ > 0) return;
  out.resize(static_cast<size_t>(sample_length_));
  part.stream.copy(place_of(number), out);
  check(part.stream, place_of(number), out);
}

int64_t Dataset::tokens_of(const ConcatenatedSource& stream, int64_t samples) const {
  return row_documents_ > 0 ? stream.document_begin(samples * row_documents_) : samples * sample_length_;
}

int64_t Dataset::train_tokens() const {
  int64_t tokens = 0;
  for (const TrainingStream& part : streams_) tokens += tokens_of(part.stream, part.order.samples());
  return tokens;
}

Batch Dataset::sample_batch(int64_t first, int64_t count) const {
  Batch result = empty_batch(count * columns(), sequence_);
  for (int64_t sample = first; sample < first + count; sample++) {
    const TrainingStream& part = stream_of(sample);
    write({part.stream, place_of(sample - part.first_sample)},
          {seed_, static_cast<uint64_t>(sample), SampleKey::kValidation}, result, (sample - first) * columns());
  }
  return result;
}

int64_t Dataset::longest_document(int64_t sample) const {
  const TrainingStream& part = stream_of(sample);
  const int64_t number = sample - part.first_sample, begin = place_of(number);
  int64_t longest = 0;
  for (int64_t document = 0; document < row_documents_; document++)
    longest = std::max(longest, std::ssize(row_text(part.stream, number * row_documents_ + document)));
  if (row_documents_ > 0) return longest;
  for (int64_t p = begin; p < begin + sample_length_;) {
    const int64_t end = std::min(part.stream.document_end(p), begin + sample_length_);
    longest = std::max(longest, end - p);
    p = end;
  }
  return longest;
}

// Hashes the sizes, and the tokens and ends of documents. It reads all of a small text, and otherwise 1,024 places. So
// it finds most changes without reading a terabyte.
std::string Dataset::fingerprint() const {
  constexpr int64_t kPlaces = 1024, kTokens = 64;
  std::vector<int64_t> facts{sample_length_, samples_};
  for (const TrainingStream& part : streams_) {
    const int64_t tokens = tokens_of(part.stream, part.order.samples()), places = std::min(kPlaces, (tokens + kTokens - 1) / kTokens);
    facts.push_back(part.order.samples());
    for (int64_t i = 0; i < places; i++) {
      const auto last = static_cast<__int128>(std::max<int64_t>(0, tokens - kTokens));  // last possible beginning
      const auto place = static_cast<int64_t>(last * i / std::max<int64_t>(1, places - 1));
      const int64_t count = std::min(kTokens, tokens - place);
      facts.resize(facts.size() + static_cast<size_t>(count));
      part.stream.copy(place, std::span(facts).last(static_cast<size_t>(count)));
      for (int64_t p = place; p < place + count;) facts.push_back(p = part.stream.document_end(p));
    }
  }
  return fmt::format("{:016x}", XXH3_64bits(facts.data(), facts.size() * sizeof facts[0]));
}

void Dataset::check_same(const std::string& saved) const {
  if (saved != fingerprint())
    throw UserError({"", "data.train", "the text that the run started with", "other text",
                     "put the old text back, or start a new run with another run.dir"});
}

int64_t Dataset::never_admitted() const {
  int64_t never = 0;
  for (const TrainingStream& part : streams_)
    if (part.admitted) never += part.admitted->samples() - part.admitted->admitted(kNever - 1);
  return never;
}

}  // namespace megalith
