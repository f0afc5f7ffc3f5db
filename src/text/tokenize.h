// Text files to token shards, and the key under which the result can be found again.
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
  int64_t text_bytes = 0;  // of the documents, uncompressed
  int64_t not_utf8 = 0;    // documents with bytes that are not UTF-8: Latin-1, most often
};

// How far: bytes of the files as stored, and what has come out so far. Called on the caller's thread: at the
// start (not at 0 where an earlier run is gone on with), a few times a second at most, and at the end.
using TokenizeProgress =
    std::function<void(int64_t bytes_read, int64_t bytes_total, const TokenizeCounts& counts)>;

struct TokenizeHooks {
  TokenizeProgress progress;
  std::function<bool()> stop;  // asked all the while; true ends the work with Interrupted, to be gone on with
  int64_t threads = 0;         // 0: the machine's cores
  double keep_seconds = 0.25;  // shortest time between two places from which a killed process can go on
};

// Writes PREFIX.bin, PREFIX.idx (shards.h) and PREFIX.sums (shard_sums.h). Each document ends with the tokenizer's end token
// if it has one. Parallel, in bounded memory; the result does not depend on the number of threads, nor on how
// often the work was interrupted: the same call goes on where the last one stopped or was killed. Other
// files, options or tokenizers begin anew, and so do files that changed.
TokenizeCounts tokenize_corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer, const std::filesystem::path& out_prefix,
                               const TokenizeHooks& hooks = {});

// 32 hex digits that change whenever the shards would: file contents and order, options, tokenizer. Reads all
// files.
std::string corpus_fingerprint(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer);

}  // namespace megalith
