// Counts how often each word of a corpus occurs, which is all that BPE training needs.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.h"

namespace megalith {

struct WordCountSettings {
  int64_t threads = 0;  // 0 = one per core
  int64_t memory =
      256ll << 20;  // bytes, roughly; counts that do not fit go to the system's temporary folder
};

// Splits words by GPT-2's pattern; skips `special` tokens in the text. Calls each(word, count) once per word, in the
// byte order of the words. The number of threads and the memory do not change these calls. Calls `progress(bytes_read)` on
// this thread to report progress.
void count_words(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                 const std::vector<std::string>& special, const WordCountSettings& settings,
                 const std::function<void(int64_t bytes_read)>& progress,
                 const std::function<void(std::string_view word, int64_t count)>& each);

}  // namespace megalith
