#include "text/word_counts.h"

#include "text/added_tokens.h"
#include "text/gpt2_split.h"
#include "text/ordered_pool.h"
#include "text/piece_batch.h"

namespace megalith {
namespace {

void count_into(WordCounts& counts, const Gpt2Splitter& splitter, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = splitter.word_end(text, at);
    std::string_view word = text.substr(at, end - at);
    auto found = counts.find(word);
    if (found != counts.end())
      found->second++;
    else
      counts.emplace(word, 1);
    at = end;
  }
}

}  // namespace

WordCounts count_words(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                       const std::vector<std::string>& special, int64_t threads,
                       const std::function<void(int64_t)>& told) {
  std::vector<std::pair<std::string, AddedToken>> cut_out;
  for (const std::string& token : special) cut_out.emplace_back(token, AddedToken{.content = token});
  AddedTokenSplitter specials(std::move(cut_out));
  Gpt2Splitter splitter;
  std::vector<WordCounts> counts;  // one a worker

  auto work = [&](PieceBatch& batch, size_t worker) {
    for (const auto& piece : batch.pieces()) {
      std::string_view text = batch.text(piece);
      for (size_t at = 0; at < text.size();) {
        auto span = specials.next(text, at);
        count_into(counts[worker], splitter, text.substr(at, span.begin - at));
        at = span.end;
      }
    }
  };
  OrderedPool<PieceBatch> pool(threads, work, [&](PieceBatch& batch) { told(batch.bytes_read()); });
  counts.resize(pool.threads());
  for_each_batch(files, options, [&](PieceBatch batch) { pool.submit(std::move(batch)); });
  pool.finish();

  WordCounts total = std::move(counts[0]);
  for (size_t worker = 1; worker < counts.size(); worker++) {
    for (const auto& [word, count] : counts[worker]) total[word] += count;
    counts[worker] = {};
  }
  return total;
}

}  // namespace megalith
