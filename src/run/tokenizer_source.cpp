#include "run/tokenizer_source.h"

#include <filesystem>

#include "base/files.h"
#include "data/objectives.h"
#include "run/data_files.h"
#include "run/setting_path.h"
#include "text/bpe_trainer.h"

namespace megalith {
namespace {

std::string train_tokenizer(const Config& config, const std::function<void(const std::string&)>& say) {
  const auto files = files_to_train_tokenizer_on(config.data);
  say(fmt::format("training a tokenizer of {} tokens", config.data.tokenizer.train_vocab));
  std::vector<std::string> special{"<|endoftext|>"};
  if (row_of(config.objective.kind).needs_mask) special.push_back("<|mask|>");
  if (row_of(config.objective.kind).moves_text)
    for (int64_t i = 0; i < span_counts(config.objective, config.data.sequence, /*ends=*/true).spans; i++)
      special.push_back(sentinel_name(i));
  BpeTrainerOptions options;
  options.corpus = corpus_options(config);
  return train_bpe(files, config.data.tokenizer.train_vocab, special, {}, options);
}

std::unique_ptr<Tokenizer> load_named(const std::string& path) {
  return load_tokenizer(for_setting("data.tokenizer", path, [&] { return tokenizer_file(path); }));
}

}  // namespace

int64_t KeptTokenizer::vocabulary(const Config& config, std::vector<std::string>&) {
  const std::filesystem::path kept = directory_.file("tokenizer.json");
  if (std::filesystem::exists(kept)) {
    tokenizer_ = load_tokenizer(kept);
    return tokenizer_->vocab_size();
  }
  if (!config.data.tokenizer.path.empty())
    tokenizer_ = load_named(config.data.tokenizer.path);
  else if (config.data.tokenizer.train_vocab > 0)
    tokenizer_ = parse_tokenizer_json(train_tokenizer(config, say_), kept.string());
  else if (!config.model.from.empty())
    tokenizer_ = tokenizer_of_folder(config.model.from);
  if (!tokenizer_) return 0;
  for (const auto& [name, content] : tokenizer_->files()) write_file_atomically(directory_.file(name), content);
  return tokenizer_->vocab_size();
}

int64_t ForeseenTokenizer::vocabulary(const Config& config, std::vector<std::string>& notes) {
  const auto take = [&](std::unique_ptr<Tokenizer> tokenizer, const std::string& from) -> int64_t {
    tokenizer_ = std::move(tokenizer);
    if (!tokenizer_) return 0;
    notes.push_back(fmt::format("vocabulary of {} tokens from {}", tokenizer_->vocab_size(), from));
    return tokenizer_->vocab_size();
  };
  const TokenizerSettings& wanted = config.data.tokenizer;
  const std::filesystem::path kept = std::filesystem::path(config.run.dir) / "tokenizer.json";
  if (begun_ && std::filesystem::exists(kept)) return take(load_tokenizer(kept), kept.string());
  if (!wanted.path.empty()) return take(load_named(wanted.path), wanted.path);
  if (wanted.train_vocab > 0) {
    if (config.model.shape.vocab == 0)
      notes.push_back(
          fmt::format("vocabulary of {} tokens from data.tokenizer: the tokenizer is trained at the start of the run",
                      wanted.train_vocab));
    return wanted.train_vocab;
  }
  if (!config.model.from.empty()) return take(tokenizer_of_folder(config.model.from), config.model.from);
  return 0;
}

}  // namespace megalith
