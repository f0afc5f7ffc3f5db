#include "text/word_counts.h"

#include <utility>

#include "text/added_tokens.h"
#include "text/count_runs.h"
#include "text/gpt2_split.h"
#include "text/ordered_pool.h"
#include "text/piece_batch.h"

namespace megalith {
namespace {

// The counts of one worker, and their approximate size in bytes.
struct Counter {
  WordCounts counts;
  int64_t bytes = 0;

  void add(std::string_view word) {
    if (auto found = counts.find(word); found != counts.end()) {
      found->second++;
      return;
    }
    constexpr size_t kNode = 80,
                     kInside = 15;  // bytes: a map node with its bucket; the longest string that needs no heap memory
    bytes += static_cast<int64_t>(kNode + (word.size() > kInside ? word.size() + 17 : 0));
    counts.emplace(word, 1);
  }
  void add_text(const Gpt2Splitter& splitter, std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      size_t end = splitter.word_end(text, at);
      add(text.substr(at, end - at));
      at = end;
    }
  }
  WordCounts take() {
    bytes = 0;
    return std::exchange(counts, {});
  }
};

}  // namespace

void count_words(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                 const std::vector<std::string>& special, const WordCountSettings& settings,
                 const std::function<void(int64_t)>& progress,
                 const std::function<void(std::string_view, int64_t)>& each) {
  std::vector<std::pair<std::string, AddedToken>> cut_out;
  for (const std::string& token : special) cut_out.emplace_back(token, AddedToken{.content = token});
  AddedTokenSplitter specials(std::move(cut_out));
  Gpt2Splitter splitter;
  std::vector<Counter> counters;  // one per worker
  CountRuns runs;

  auto work = [&](PieceBatch& batch, size_t worker) {
    Counter& counter = counters[worker];
    for (const auto& piece : batch.pieces()) {
      std::string_view text = batch.text(piece);
      for (size_t at = 0; at < text.size();) {
        auto span = specials.next(text, at);
        counter.add_text(splitter, text.substr(at, span.begin - at));
        at = span.end;
      }
      if (counter.bytes > settings.memory / static_cast<int64_t>(counters.size())) runs.spill(counter.take());
    }
  };
  OrderedPool<PieceBatch> pool(settings.threads, work, [&](PieceBatch& batch) { progress(batch.bytes_read()); });
  counters.resize(pool.threads());
  for_each_batch(files, options, [&](PieceBatch batch) { pool.submit(std::move(batch)); });
  pool.finish();
  for (Counter& counter : counters) runs.keep(counter.take());
  runs.merge(each);
}

}  // namespace megalith
