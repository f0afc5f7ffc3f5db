#include "run/prepare_data.h"

#include "base/error.h"
#include "base/files.h"
#include "data/shard_source.h"
#include "report/tokenize_progress.h"
#include "text/bpe_trainer.h"
#include "text/corpus.h"

namespace megalith {
namespace {

using Say = std::function<void(const std::string&)>;

// Whether an entry means token shards: by the name of one of their files, or by a prefix that has an index.
bool names_shard(const std::string& entry) {
  return shard_prefix(entry) != std::filesystem::path(entry) ||
         std::filesystem::exists(shard_file(entry, ".idx"));
}

CorpusOptions corpus_options(const DataSettings& data) {
  CorpusOptions options;
  options.text_field = data.text_field;
  options.separator = data.separator;
  options.separator_token = data.separator_token;
  return options;
}

std::vector<std::string> text_entries(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries)
    if (!names_shard(entry)) out.push_back(entry);
  return out;
}

std::string train_tokenizer(const Config& config, const Say& say) {
  auto files = expand_files(text_entries(config.data.train));
  if (files.empty())
    throw UserError({"", "data.tokenizer", "text in data.train to train a tokenizer on", "token shards only",
                     "give the tokenizer that made the shards"});
  say(fmt::format("training a tokenizer of {} tokens", config.data.tokenizer.train_vocab));
  std::vector<std::string> special{"<|endoftext|>"};
  if (config.objective.kind == Objective::masked) special.push_back("<|mask|>");
  BpeTrainerOptions options;
  options.corpus = corpus_options(config.data);
  return train_bpe(files, config.data.tokenizer.train_vocab, special, {}, options);
}

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

std::unique_ptr<Tokenizer> prepare_tokenizer(const Config& config, const RunDirectory& run, const Say& say) {
  const std::filesystem::path kept = run.file("tokenizer.json");
  if (std::filesystem::exists(kept)) return load_tokenizer(kept);
  std::unique_ptr<Tokenizer> tokenizer;
  if (!config.data.tokenizer.path.empty())
    tokenizer = load_tokenizer(config.data.tokenizer.path);
  else if (config.data.tokenizer.train_vocab > 0)
    tokenizer = parse_tokenizer_json(train_tokenizer(config, say), kept.string());
  else if (!config.model.from.empty())
    tokenizer = tokenizer_of_folder(config.model.from);
  if (!tokenizer) return nullptr;
  for (const auto& [name, content] : tokenizer->files()) write_file_atomically(run.file(name), content);
  return tokenizer;
}

std::unique_ptr<Dataset> prepare_data(const Config& config, const RunDirectory& run,
                                      const Tokenizer* tokenizer, const Say& say) {
  VocabularyFacts vocabulary;
  if (tokenizer)
    vocabulary = facts_of(*tokenizer);
  else
    vocabulary.vocab_size = config.model.shape.vocab;
  const DataSettings& data = config.data;
  std::vector<TrainingSet> train(data.weights.empty() ? 1 : data.train.size());
  for (size_t i = 0; i < data.train.size(); i++) {
    TrainingSet& set = train[data.weights.empty() ? 0 : i];
    add_sources(set.sources, data.train[i], config, run, tokenizer, "data.train", say);
    if (!data.weights.empty()) set.weight = data.weights[i];
  }
  TokenSources valid;
  for (const std::string& entry : data.valid)
    add_sources(valid, entry, config, run, tokenizer, "data.valid", say);
  return std::make_unique<Dataset>(std::move(train), std::move(valid), data, config.objective, vocabulary,
                                   config.run.seed, config.train.batch);
}

}  // namespace megalith
