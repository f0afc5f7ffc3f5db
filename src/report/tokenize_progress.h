// Tokenizing for the command line: progress on stderr, and Ctrl-C keeps what is done.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "text/tokenize.h"

namespace megalith {

// Calls tokenize_corpus with progress and Ctrl-C. Throws Interrupted after a signal. `threads` 0: the machine's cores.
TokenizeCounts tokenize_with_progress(const std::vector<std::filesystem::path>& files,
                                      const CorpusOptions& options, const Tokenizer& tokenizer,
                                      const std::filesystem::path& prefix, int64_t threads);

}  // namespace megalith
