// How often each word of a corpus occurs: all that BPE training needs to know of it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/corpus.h"
#include "text/token_model.h"

namespace megalith {

using WordCounts = std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>>;

// Words by GPT-2's pattern, counted on several threads (0 = the machine's cores); `special` tokens in the
// text are cut out. Memory grows with the number of different words, not with the text. `told(bytes_read)`
// runs on this thread.
WordCounts count_words(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                       const std::vector<std::string>& special, int64_t threads,
                       const std::function<void(int64_t bytes_read)>& told);

}  // namespace megalith
