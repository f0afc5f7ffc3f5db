// Tokenizing as a person sees it: progress on stderr, Ctrl-C keeps what is done.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "text/tokenize.h"

namespace megalith {

// tokenize_corpus with both. Throws Interrupted after a signal. `threads` 0: the machine's cores.
TokenizeCounts tokenize_with_progress(const std::vector<std::filesystem::path>& files,
                                      const CorpusOptions& options, const Tokenizer& tokenizer,
                                      const std::filesystem::path& prefix, int64_t threads);

}  // namespace megalith
