// Word counts as sorted runs. Runs are written to a file when memory is short, and merged at the end.
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
  // Keeps the counts in memory as one run. Thread-safe.
  void keep(WordCounts counts);
  // Writes the counts as one run to a file in the system's temporary folder. The file has no name, and the system
  // removes it when the process ends. Thread-safe. Throws Fault if the disk is full.
  void spill(WordCounts counts);

  // Calls each(word, count) once for every word of all runs, in the order of their bytes.
  void merge(const std::function<void(std::string_view word, int64_t count)>& each);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Run {
    std::unique_ptr<std::FILE, CloseFile> file;  // null if the words are in `counts`
    std::vector<std::pair<std::string, int64_t>> counts;
    size_t next = 0;  // index in `counts`
    std::string word;
    int64_t count = 0;
    bool advance();  // moves to the next word; returns false at the end
  };
  std::mutex mutex_;
  std::vector<Run> runs_;
};

}  // namespace megalith
