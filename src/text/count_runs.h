// Counts of words as sorted runs: written to a file when memory is short, merged at the end.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/token_model.h"

namespace megalith {

using WordCounts = std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>>;

class CountRuns {
 public:
  // Takes the counts as one run, kept in memory.
  void keep(WordCounts counts);
  // Takes the counts as one run, written to a file of the system's folder for temporary files that nobody
  // else sees and that goes away with the process. Thread-safe. Fault if the disk is full.
  void spill(WordCounts counts);

  // Calls each(word, count) once for every word of all runs, in the order of their bytes.
  void merge(const std::function<void(std::string_view word, int64_t count)>& each);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Run {
    std::unique_ptr<std::FILE, CloseFile> file;  // null: `counts` has the words
    std::vector<std::pair<std::string, int64_t>> counts;
    size_t next = 0;  // in counts
    std::string word;
    int64_t count = 0;
    bool advance();  // to the next word; false at the end
  };
  std::mutex mutex_;
  std::vector<Run> runs_;
};

}  // namespace megalith
