// How often each word of a corpus occurs: all that BPE training needs to know of it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.h"

namespace megalith {

struct WordCountSettings {
  int64_t threads = 0;  // 0 = the machine's cores
  int64_t memory =
      256ll << 20;  // bytes, about; what exceeds it goes to the system's folder for temporary files
};

// Words by GPT-2's pattern; `special` tokens in the text are cut out. Calls each(word, count) once for every
// word, in the order of their bytes: neither threads nor memory change what is told. `told(bytes_read)` runs
// on this thread.
void count_words(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                 const std::vector<std::string>& special, const WordCountSettings& settings,
                 const std::function<void(int64_t bytes_read)>& told,
                 const std::function<void(std::string_view word, int64_t count)>& each);

}  // namespace megalith
