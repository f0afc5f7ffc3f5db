// Turns text files into token shards. Computes the key under which a cache finds the result.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"
#include "text/tokenizer.h"

namespace megalith {

struct TokenizeCounts {
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t text_bytes = 0;  // bytes of the documents, uncompressed
  int64_t not_utf8 = 0;    // documents with bytes that are not UTF-8 (usually Latin-1)
};

// Reports progress: bytes of the files as stored, and the counts so far. Called on the caller's thread: at the start,
// at most five times a second, and at the end. A resumed run does not start at 0.
using TokenizeProgress =
    std::function<void(int64_t bytes_read, int64_t bytes_total, const TokenizeCounts& counts)>;

struct TokenizeHooks {
  TokenizeProgress progress;
  std::function<bool()> stop;  // called before each batch; true stops with Interrupted, and the same call resumes
  int64_t threads = 0;         // 0: one per core
  double keep_seconds = 0.25;  // shortest time between two points from which a killed process can resume
};

// Writes PREFIX.bin, PREFIX.idx (shards.h) and PREFIX.sums (shard_sums.h). Each document ends with the tokenizer's end
// token if it has one. Parallel, in bounded memory. The same call resumes where the last one was stopped or killed. The
// result does not depend on the number of threads or interruptions. A call with other or changed files, options or
// tokenizer starts from the beginning.
TokenizeCounts tokenize_corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer, const std::filesystem::path& out_prefix,
                               const TokenizeHooks& hooks = {});

// Returns 32 hex digits that change whenever the shards would change: with file contents, file order, options or
// tokenizer. Reads all files.
std::string corpus_fingerprint(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer);

}  // namespace megalith
