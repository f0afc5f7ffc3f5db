// Training a byte-level BPE vocabulary (GPT-2's split pattern and byte alphabet).
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"

namespace megalith {

// `done` in [0, 1] of the phase ("count" the words, then "merge"); called on the caller's thread, a few times
// a second at most.
using BpeProgress = std::function<void(const std::string& phase, double done)>;

struct BpeTrainerOptions {
  int64_t threads = 0;  // 0 = the machine's cores; the result does not depend on it
  // Bytes for counting words; what exceeds them goes to temporary files. The result does not depend on it.
  // The different words themselves, at 4 bytes a letter, are then kept in memory to be merged.
  int64_t word_memory = 256ll << 20;
  CorpusOptions corpus;
};

// Learns a vocabulary of `vocab` tokens: special tokens first (<|endoftext|> is put in front if absent), then
// the 256 bytes, then merges. The most frequent pair is merged first, among equals the one with the lowest
// ids: the same text gives the same vocabulary, and the one Hugging Face's trainer gives. Returns the text of
// a tokenizer.json. A text too small for `vocab` merges gives a smaller vocabulary, with a warning. UserError
// if vocab < 256 + special tokens.
std::string train_bpe(const std::vector<std::filesystem::path>& files, int64_t vocab,
                      const std::vector<std::string>& special_tokens = {}, const BpeProgress& progress = {},
                      const BpeTrainerOptions& options = {});

}  // namespace megalith
