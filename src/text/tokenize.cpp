#include "text/tokenize.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "config/yaml.h"
#include "text/ordered_pool.h"
#include "text/piece_batch.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr int kFormat = 2;  // increment when the same text and tokenizer give other shards than before

class Fingerprint {
 public:
  Fingerprint() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_) throw Fault("out of memory: cannot create a fingerprint");
    XXH3_128bits_reset(state_.get());
  }
  // Adds the length of the part first, so that no two lists of parts give the same bytes.
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

// Adds everything that determines the tokens, except the text files.
void add_settings(Fingerprint& fingerprint, const CorpusOptions& options, const Tokenizer& tokenizer) {
  fingerprint.add(fmt::format("megalith tokens {}", kFormat));
  fingerprint.add(options.text_field);
  for (const std::string& column : options.columns) fingerprint.add("column " + column);
  fingerprint.add(options.separator);
  fingerprint.add(options.separator_token);
  for (const auto& [name, content] : tokenizer.files()) fingerprint.add(content);
}

// Returns a cheap identity of a job: uses name, size and modification time of each file, not its content.
std::string job_name(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                     const Tokenizer& tokenizer) {
  Fingerprint fingerprint;
  add_settings(fingerprint, options, tokenizer);
  fingerprint.add(fmt::format("{}", options.piece_bytes));
  for (const auto& path : files) {
    std::error_code none;  // opening the file later reports the error
    fingerprint.add(std::filesystem::absolute(path).string());
    fingerprint.add(fmt::format("{} {}", std::filesystem::file_size(path, none),
                                std::filesystem::last_write_time(path, none).time_since_epoch().count()));
  }
  return fingerprint.hex();
}

// One run of tokenize_corpus: from pieces of text to a shard.
class Tokenization {
 public:
  Tokenization(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
               const Tokenizer& tokenizer, const std::filesystem::path& prefix, const TokenizeHooks& hooks)
      : files_(files),
        options_(options),
        tokenizer_(tokenizer),
        end_(tokenizer.end_token()),
        hooks_(hooks),
        bytes_total_(stored_bytes(files)),
        writer_(prefix, width_for_vocab(tokenizer.vocab_size()), job_name(files, options, tokenizer)) {
    if (!writer_.kept().is_null()) resume(writer_.kept());
  }

  TokenizeCounts run() {
    try {
      report();
      OrderedPool<Task> pool(
          hooks_.threads, [this](Task& task, size_t) { encode(task); }, [this](Task& task) { write(task); });
      for_each_batch(
          files_, options_,
          [&](PieceBatch batch) {
            if (hooks_.stop && hooks_.stop()) stop(pool);
            pool.submit({std::move(batch), {}, {}});
          },
          place_);
      pool.finish();
      writer_.finish();
    } catch (const UserError&) {
      writer_.discard();  // a fix by the user changes the job, so that it cannot be resumed
      throw;
    }
    bytes_read_ = bytes_total_;
    report();
    return counts_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    PieceBatch batch;
    std::vector<std::vector<TokenId>> ids;  // ids of each piece
    std::vector<bool> utf8;
  };

  void encode(Task& task) const {
    for (const auto& piece : task.batch.pieces()) {
      std::string_view text = task.batch.text(piece);
      task.ids.push_back(piece.first ? tokenizer_.encode(text) : tokenizer_.encode_continued(text));
      if (piece.last && end_) task.ids.back().push_back(*end_);
      task.utf8.push_back(is_utf8(text));
    }
  }

  void write(Task& task) {
    for (size_t i = 0; i < task.ids.size(); i++) {
      const auto& piece = task.batch.pieces()[i];
      writer_.add(task.ids[i]);
      counts_.text_bytes += static_cast<int64_t>(piece.size);
      open_not_utf8_ = open_not_utf8_ || !task.utf8[i];
      if (!piece.last) continue;
      writer_.end_document();
      counts_.documents++;
      counts_.not_utf8 += open_not_utf8_;
      open_not_utf8_ = false;
    }
    counts_.tokens = writer_.tokens();
    bytes_read_ = task.batch.bytes_read();
    place_ = task.batch.after();
    auto now = Clock::now();
    if (now - reported_ > std::chrono::milliseconds(200)) report();
    if (now >= next_keep_) keep();
  }

  void report() {
    reported_ = Clock::now();
    if (hooks_.progress) hooks_.progress(bytes_read_, bytes_total_, counts_);
  }

  // Called so rarely that it takes at most about 1/20 of the time, even on a slow disk.
  void keep() {
    auto began = Clock::now();
    writer_.keep({{"file", place_.file},
                  {"offset", place_.offset},
                  {"line", place_.line},
                  {"line_given", place_.line_given},
                  {"file_documents", place_.documents},
                  {"inside_document", place_.inside_document},
                  {"inside_line", place_.inside_line},
                  {"bytes_read", bytes_read_},
                  {"text_bytes", counts_.text_bytes},
                  {"not_utf8", counts_.not_utf8},
                  {"open_not_utf8", open_not_utf8_}});
    auto now = Clock::now();
    next_keep_ = now + std::max<Clock::duration>(20 * (now - began),
                                                 std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(hooks_.keep_seconds)));
  }

  void resume(const nlohmann::json& note) {
    place_ = {.file = note.at("file"),
              .offset = note.at("offset"),
              .line = note.at("line"),
              .line_given = note.at("line_given"),
              .documents = note.at("file_documents"),
              .inside_document = note.at("inside_document"),
              .inside_line = note.at("inside_line")};
    bytes_read_ = note.at("bytes_read");
    counts_ = {writer_.documents(), writer_.tokens(), note.at("text_bytes"), note.at("not_utf8")};
    open_not_utf8_ = note.at("open_not_utf8");
  }

  [[noreturn]] void stop(OrderedPool<Task>& pool) {
    pool.finish();  // a fraction of a second
    keep();
    throw Interrupted(fmt::format("interrupted after {} of {}; run the same command again to resume",
                                  show(Bytes(bytes_read_)), show(Bytes(bytes_total_))));
  }

  const std::vector<std::filesystem::path>& files_;
  const CorpusOptions& options_;
  const Tokenizer& tokenizer_;
  const std::optional<TokenId> end_;
  const TokenizeHooks& hooks_;
  const int64_t bytes_total_;
  ShardWriter writer_;
  TokenizeCounts counts_;
  TextPlace place_;             // position after the text that has been written
  bool open_not_utf8_ = false;  // true if the document being written has bytes that are not UTF-8
  int64_t bytes_read_ = 0;
  Clock::time_point reported_, next_keep_ = Clock::now();
};

}  // namespace

TokenizeCounts tokenize_corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer, const std::filesystem::path& out_prefix,
                               const TokenizeHooks& hooks) {
  return Tokenization(files, options, tokenizer, out_prefix, hooks).run();
}

std::string corpus_fingerprint(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer) {
  Fingerprint fingerprint;
  // Leaves out `piece_bytes`, which does not change the ids.
  add_settings(fingerprint, options, tokenizer);
  for (const auto& path : files) {
    fingerprint.add(is_json_lines(path) ? "json lines" : "text");
    fingerprint.add(MappedFile(path).text());
  }
  return fingerprint.hex();
}

}  // namespace megalith
