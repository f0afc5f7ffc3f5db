#include "run/prepare_data.h"

#include "base/error.h"
#include "base/files.h"
#include "data/shard_source.h"
#include "report/tokenize_progress.h"
#include "run/data_files.h"
#include "text/corpus.h"

namespace megalith {
namespace {

using Say = std::function<void(const std::string&)>;

// Tokenizes text unless the cache has its tokens; gives the shard's prefix.
std::filesystem::path shard_of(const std::string& entry, const Config& config, const RunDirectory& run,
                               const Tokenizer& tokenizer, const Say& say) {
  auto files = expand_files({entry});
  CorpusOptions options = corpus_options(config.data);
  std::filesystem::path cache =
      config.data.cache.empty() ? run.file("data") : std::filesystem::path(config.data.cache);
  std::filesystem::create_directories(cache);
  std::filesystem::path prefix = cache / corpus_fingerprint(files, options, tokenizer);
  if (is_shard(prefix)) return prefix;
  TokenizeCounts counts = tokenize_with_progress(files, options, tokenizer, prefix, 0);
  say(fmt::format("tokenized {}: {} tokens", entry, show_count(counts.tokens)));
  return prefix;
}

void add_sources(TokenSources& sources, const std::string& entry, const Config& config,
                 const RunDirectory& run, const Tokenizer* tokenizer, const char* key, const Say& say) {
  if (names_shard(entry)) {
    const bool pattern = entry.find_first_of("*?[{") != std::string::npos && !is_shard(shard_prefix(entry));
    for (const auto& path : pattern ? expand_files({entry}) : std::vector<std::filesystem::path>{entry})
      sources.push_back(std::make_unique<ShardSource>(shard_prefix(path)));
    return;
  }
  if (!tokenizer)
    throw UserError({"", "data.tokenizer", fmt::format("a tokenizer for the text in {} ({})", key, entry),
                     "none", "give a tokenizer.json, or {train: bpe, vocab: 4096}"});
  sources.push_back(std::make_unique<ShardSource>(shard_of(entry, config, run, *tokenizer, say), entry));
}

}  // namespace

std::unique_ptr<Dataset> prepare_data(const Run& run, const RunDirectory& directory, const Tokenizer* tokenizer,
                                      const Say& say) {
  const Config& config = run.config;
  VocabularyFacts vocabulary;
  if (tokenizer)
    vocabulary = facts_of(*tokenizer);
  else
    vocabulary.vocab_size = run.shape.vocab;
  const DataSettings& data = config.data;
  std::vector<TrainingSet> train(data.weights.empty() ? 1 : data.train.size());
  for (size_t i = 0; i < data.train.size(); i++) {
    TrainingSet& set = train[data.weights.empty() ? 0 : i];
    add_sources(set.sources, data.train[i], config, directory, tokenizer, "data.train", say);
    if (!data.weights.empty()) set.weight = data.weights[i];
  }
  TokenSources valid;
  for (const std::string& entry : data.valid)
    add_sources(valid, entry, config, directory, tokenizer, "data.valid", say);
  return std::make_unique<Dataset>(std::move(train), std::move(valid), data, config.objective, vocabulary,
                                   config.run.seed, config.train.batch);
}

}  // namespace megalith
