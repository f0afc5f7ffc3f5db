#include "run/prepare_data.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/shard_source.h"
#include "report/tokenize_progress.h"
#include "run/data_files.h"
#include "text/corpus.h"

namespace megalith {
namespace {

using Say = std::function<void(const std::string&)>;

// Tokenizes text unless the cache has its tokens. Returns the prefix of the shard.
std::filesystem::path shard_of(const std::string& entry, const Config& config, const RunDirectory& run,
                               const Tokenizer& tokenizer, const Say& say) {
  auto files = expand_files({entry});
  CorpusOptions options = corpus_options(config);
  std::filesystem::path cache =
      config.data.cache.empty() ? run.file("data") : std::filesystem::path(config.data.cache);
  std::filesystem::create_directories(cache);
  std::filesystem::path prefix = cache / corpus_fingerprint(files, options, tokenizer);
  if (is_shard(prefix)) return prefix;
  TokenizeCounts counts = tokenize_with_progress(files, options, tokenizer, prefix, 0);
  say(fmt::format("tokenized {}: {} tokens", entry, show_count(counts.tokens)));
  return prefix;
}

class SourceFinder {
 public:
  SourceFinder(const Config& config, const RunDirectory& directory, const Tokenizer* tokenizer, const Say& say)
      : config_(config), directory_(directory), tokenizer_(tokenizer), say_(say) {}

  // Adds what an entry of data.train or data.valid names.
  void add(TokenSources& sources, const std::string& entry, const char* key) {
    if (names_shard(entry)) {
      for (const auto& prefix : shards_of(entry)) take(sources, std::make_unique<ShardSource>(prefix));
      return;
    }
    if (!tokenizer_) refuse_without_tokenizer(key, entry);
    take(sources, std::make_unique<CachedSource>(shard_of(entry, config_, directory_, *tokenizer_, say_), entry));
  }

  // Says once which shards cannot be verified.
  void tell_unverified() const {
    if (unverified_.empty()) return;
    const std::string more = unverified_.size() > 1 ? fmt::format(" and {} more", unverified_.size() - 1) : "";
    say_(fmt::format("damage cannot be detected in token shards without checksums (.sums): {}{}", unverified_[0], more));
  }

 private:
  template <class Source>
  void take(TokenSources& sources, std::unique_ptr<Source> source) {
    if (!source->has_checksums()) unverified_.push_back(source->name());
    sources.push_back(std::move(source));
  }

  const Config& config_;
  const RunDirectory& directory_;
  const Tokenizer* tokenizer_;
  const Say& say_;
  std::vector<std::string> unverified_;
};

std::unique_ptr<Dataset> find_data(const Run& run, const RunDirectory& directory, const Tokenizer* tokenizer,
                                   const Say& say) {
  const Config& config = run.config;
  VocabularyFacts vocabulary;
  if (tokenizer)
    vocabulary = facts_of(*tokenizer);
  else
    vocabulary.vocab_size = run.shape.vocab;
  const DataSettings& data = config.data;
  SourceFinder finder(config, directory, tokenizer, say);
  std::vector<TrainingSet> train(data.weights.empty() ? 1 : data.train.size());
  for (size_t i = 0; i < data.train.size(); i++) {
    TrainingSet& set = train[data.weights.empty() ? 0 : i];
    finder.add(set.sources, data.train[i], "data.train");
    if (!data.weights.empty()) set.weight = data.weights[i];
  }
  TokenSources valid;
  for (const std::string& entry : data.valid) finder.add(valid, entry, "data.valid");
  auto dataset = std::make_unique<Dataset>(std::move(train), std::move(valid), data, config.objective, vocabulary,
                                           config.run.seed, config.train.batch, documents_of_sample(config));
  finder.tell_unverified();
  return dataset;
}

}  // namespace

std::unique_ptr<Dataset> prepare_data(const Run& run, const RunDirectory& directory, const Tokenizer* tokenizer,
                                      const Say& say) {
  const DataSettings& data = run.config.data;
  for (size_t caches = data.train.size() + data.valid.size(); caches > 0; caches--) {
    try {
      return find_data(run, directory, tokenizer, say);
    } catch (const DamagedCache& damage) {
      log::warn("{}", damage.what());
    }
  }
  return find_data(run, directory, tokenizer, say);
}

}  // namespace megalith
