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
};

// How far: bytes of the files as stored, and what has come out so far. Called on the caller's thread, a few
// times a second at most, and once at the end.
using TokenizeProgress =
    std::function<void(int64_t bytes_read, int64_t bytes_total, const TokenizeCounts& counts)>;

// Writes PREFIX.bin and PREFIX.idx (which see: shards.h). Each document ends with the tokenizer's end token
// if it has one. Uses `threads` (0 = the machine's cores) in bounded memory; the result does not depend on
// their number.
TokenizeCounts tokenize_corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer, const std::filesystem::path& out_prefix,
                               const TokenizeProgress& progress = {}, int64_t threads = 0);

// 32 hex digits that change whenever the shards would: file contents and order, options, tokenizer. Reads all
// files.
std::string corpus_fingerprint(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                               const Tokenizer& tokenizer);

}  // namespace megalith
