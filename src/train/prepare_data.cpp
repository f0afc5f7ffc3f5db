#include "train/prepare_data.h"

#include "base/error.h"
#include "base/files.h"
#include "data/shard_source.h"
#include "text/bpe_trainer.h"
#include "text/corpus.h"
#include "text/tokenize.h"

namespace megalith {
namespace {

using Say = std::function<void(const std::string&)>;

// A shard may be named by its prefix or by one of its files.
std::filesystem::path shard_prefix(const std::string& entry) {
  std::filesystem::path path(entry);
  if (path.extension() == ".bin" || path.extension() == ".idx") path.replace_extension();
  return path;
}
bool names_shard(const std::string& entry) { return is_shard(shard_prefix(entry)); }

CorpusOptions corpus_options(const DataSettings& data) {
  CorpusOptions options;
  options.text_field = data.text_field;
  options.separator = data.separator;
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

TokenSources sources_of(const std::vector<std::string>& entries, const Config& config, const RunDirectory& run,
                        const Tokenizer* tokenizer, const char* key, const Say& say) {
  TokenSources sources;
  for (const std::string& entry : entries) {
    if (names_shard(entry)) {
      sources.push_back(std::make_unique<ShardSource>(shard_prefix(entry)));
      continue;
    }
    if (!tokenizer)
      throw UserError({"", "data.tokenizer", fmt::format("a tokenizer for the text in {} ({})", key, entry), "none",
                       "give a tokenizer.json, or {train: bpe, vocab: 4096}"});
    auto files = expand_files({entry});
    CorpusOptions options = corpus_options(config.data);
    std::filesystem::path cache = config.data.cache.empty() ? run.file("data") : std::filesystem::path(config.data.cache);
    std::filesystem::create_directories(cache);
    std::filesystem::path prefix = cache / corpus_fingerprint(files, options, *tokenizer);
    if (!is_shard(prefix)) {
      TokenizeCounts counts = tokenize_corpus(files, options, *tokenizer, prefix, {});
      say(fmt::format("tokenized {}: {} tokens", entry, show_count(counts.tokens)));
    }
    sources.push_back(std::make_unique<ShardSource>(prefix, entry));
  }
  return sources;
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
  else if (!config.model.from.empty() && std::filesystem::exists(std::filesystem::path(config.model.from) / "tokenizer.json"))
    tokenizer = load_tokenizer(std::filesystem::path(config.model.from) / "tokenizer.json");
  if (!tokenizer) return nullptr;
  for (const auto& [name, content] : tokenizer->files()) write_file_atomically(run.file(name), content);
  return tokenizer;
}

std::unique_ptr<Dataset> prepare_data(const Config& config, const RunDirectory& run, const Tokenizer* tokenizer,
                                      const Say& say) {
  VocabularyFacts vocabulary;
  if (tokenizer) vocabulary = facts_of(*tokenizer);
  else vocabulary.vocab_size = config.model.shape.vocab;
  return std::make_unique<Dataset>(sources_of(config.data.train, config, run, tokenizer, "data.train", say),
                                   sources_of(config.data.valid, config, run, tokenizer, "data.valid", say), config.data,
                                   config.objective, vocabulary, config.run.seed, config.train.batch);
}

}  // namespace megalith
