#include "text/tokenize.h"

#include <xxhash.h>

#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "text/ordered_pool.h"
#include "text/piece_batch.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr int kFormat = 1;  // raise when the same text and tokenizer come to give other shards

class Fingerprint {
 public:
  Fingerprint() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_) throw Fault("no memory for a fingerprint");
    XXH3_128bits_reset(state_.get());
  }
  // Preceded by its length, so that no two lists of parts look alike.
  void add(std::string_view part) {
    uint64_t size = part.size();
    XXH3_128bits_update(state_.get(), &size, sizeof size);
    XXH3_128bits_update(state_.get(), part.data(), part.size());
  }
  std::string hex() const {
    XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace

TokenizeCounts tokenize_corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer, const std::filesystem::path& out_prefix,
                               const TokenizeProgress& progress, int64_t threads) {
  struct Task {
    PieceBatch batch;
    std::vector<std::vector<TokenId>> ids;  // of each piece
  };
  TokenizeCounts counts;
  const int64_t bytes_total = stored_bytes(files);
  ShardWriter writer(out_prefix, width_for_vocab(tokenizer.vocab_size()));
  auto end = tokenizer.end_token();
  auto last_told = std::chrono::steady_clock::now();

  auto work = [&](Task& task, size_t) {
    for (const auto& piece : task.batch.pieces()) {
      std::string_view text = task.batch.text(piece);
      task.ids.push_back(piece.first ? tokenizer.encode(text) : tokenizer.encode_continued(text));
      if (piece.last && end) task.ids.back().push_back(*end);
    }
  };
  auto write = [&](Task& task) {
    for (size_t i = 0; i < task.ids.size(); i++) {
      const auto& piece = task.batch.pieces()[i];
      writer.add(task.ids[i]);
      if (piece.last) writer.end_document();
      counts.text_bytes += static_cast<int64_t>(piece.size);
      counts.documents += piece.last;
    }
    counts.tokens = writer.tokens();
    auto now = std::chrono::steady_clock::now();
    if (progress && now - last_told > std::chrono::milliseconds(200)) {
      last_told = now;
      progress(task.batch.bytes_read(), bytes_total, counts);
    }
  };
  OrderedPool<Task> pool(threads, work, write);
  for_each_batch(files, options, [&](PieceBatch batch) { pool.submit({std::move(batch), {}}); });
  pool.finish();
  writer.finish();
  if (progress) progress(bytes_total, bytes_total, counts);
  return counts;
}

std::string corpus_fingerprint(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer) {
  Fingerprint fingerprint;
  // The cut of pieces is no part of it: it does not change the ids.
  fingerprint.add(fmt::format("megalith tokens {}", kFormat));
  fingerprint.add(options.text_field);
  fingerprint.add(options.separator);
  fingerprint.add(tokenizer.files().front().second);
  for (const auto& path : files) {
    fingerprint.add(is_json_lines(path) ? "json lines" : "text");
    fingerprint.add(MappedFile(path).text());
  }
  return fingerprint.hex();
}

}  // namespace megalith
