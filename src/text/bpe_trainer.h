// Training a byte-level BPE vocabulary (GPT-2's split pattern and byte alphabet).
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"

namespace megalith {

// `phase` is "count" (of the words), then "merge". `done` is the finished fraction of the phase, in [0, 1]. Called on
// the caller's thread, at most five times a second.
using BpeProgress = std::function<void(const std::string& phase, double done)>;

struct BpeTrainerOptions {
  int64_t threads = 0;  // 0 = the machine's cores; the result does not depend on it
  // Bytes for counting words; counts that do not fit go to temporary files. The result does not depend on it. Merging
  // needs more memory: all different words are kept, at 4 bytes per byte of a word.
  int64_t word_memory = 256ll << 20;
  CorpusOptions corpus;
};

// Learns a vocabulary of `vocab` tokens: special tokens first (<|endoftext|> is put in front if absent), then the 256 bytes,
// then merges. The most frequent pair is merged first; among equally frequent pairs, the one with the lowest ids. So the
// same text always gives the same vocabulary, and it equals that of Hugging Face's trainer. Returns the text of a
// tokenizer.json. Warns and returns a smaller vocabulary if the text is too small. Throws UserError if vocab < 256 + special
// tokens.
std::string train_bpe(const std::vector<std::filesystem::path>& files, int64_t vocab,
                      const std::vector<std::string>& special_tokens = {}, const BpeProgress& progress = {},
                      const BpeTrainerOptions& options = {});

}  // namespace megalith
