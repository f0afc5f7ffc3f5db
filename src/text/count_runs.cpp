#include "text/count_runs.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <queue>

#include "base/error.h"

namespace megalith {
namespace {

std::vector<std::pair<std::string, int64_t>> sorted(WordCounts counts) {
  std::vector<std::pair<std::string, int64_t>> list;
  list.reserve(counts.size());
  while (!counts.empty()) {
    auto node = counts.extract(counts.begin());
    list.emplace_back(std::move(node.key()), node.mapped());
  }
  std::sort(list.begin(), list.end());
  return list;
}

[[noreturn]] void fail(const char* what) {
  throw Fault(fmt::format("{} word counts in {}: {}", what,
                          std::filesystem::temp_directory_path().string(), std::strerror(errno)));
}

std::FILE* nameless_file() {
  std::string name = (std::filesystem::temp_directory_path() / "megalith-words-XXXXXX").string();
  int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) fail("cannot store");
  ::unlink(name.c_str());
  std::FILE* file = ::fdopen(descriptor, "w+b");
  if (!file) fail("cannot store");
  return file;
}

}  // namespace

void CountRuns::keep(WordCounts counts) {
  Run run;
  run.counts = sorted(std::move(counts));
  std::lock_guard lock(mutex_);
  runs_.push_back(std::move(run));
}

void CountRuns::spill(WordCounts counts) {
  Run run;
  run.file.reset(nameless_file());
  for (const auto& [word, count] : sorted(std::move(counts))) {
    auto size = static_cast<int64_t>(word.size());
    if (std::fwrite(&size, sizeof size, 1, run.file.get()) != 1 ||
        std::fwrite(&count, sizeof count, 1, run.file.get()) != 1 ||
        std::fwrite(word.data(), 1, word.size(), run.file.get()) != word.size())
      fail("cannot write");
  }
  if (std::fflush(run.file.get()) != 0) fail("cannot write");
  std::rewind(run.file.get());
  std::lock_guard lock(mutex_);
  runs_.push_back(std::move(run));
}

bool CountRuns::Run::advance() {
  if (!file) {
    if (next == counts.size()) return false;
    std::tie(word, count) = std::move(counts[next++]);
    return true;
  }
  int64_t size = 0;
  if (std::fread(&size, sizeof size, 1, file.get()) != 1) {
    if (std::ferror(file.get())) fail("cannot read");
    return false;
  }
  word.resize(static_cast<size_t>(size));
  if (std::fread(&count, sizeof count, 1, file.get()) != 1 ||
      std::fread(word.data(), 1, word.size(), file.get()) != word.size())
    fail("cannot read");
  return true;
}

void CountRuns::merge(const std::function<void(std::string_view, int64_t)>& each) {
  auto later = [&](size_t a, size_t b) { return runs_[a].word > runs_[b].word; };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> queue(later);
  for (size_t i = 0; i < runs_.size(); i++)
    if (runs_[i].advance()) queue.push(i);
  std::string word;
  int64_t count = 0;
  while (!queue.empty()) {
    size_t first = queue.top();
    queue.pop();
    if (count > 0 && runs_[first].word != word) {
      each(word, count);
      count = 0;
    }
    word = runs_[first].word;
    count += runs_[first].count;
    if (runs_[first].advance()) queue.push(first);
  }
  if (count > 0) each(word, count);
  runs_.clear();
}

}  // namespace megalith
