#include "run/data_files.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/mistakes.h"
#include "run/setting_path.h"
#include "text/shards.h"

namespace megalith {
namespace {

void check_readable(const std::filesystem::path& file) { ::close(open_regular_file(file)); }

void check_shards(const char* key, const std::string& entry) {
  const auto prefixes = for_setting(key, entry, [&] {
    auto shards = shards_of(entry);
    if (shards == std::vector{shard_prefix(entry)}) expect_shard(entry);  // otherwise the names come from a pattern
    return shards;
  });
  for (const std::filesystem::path& prefix : prefixes) const TokenShard opened(prefix);
}

void check_entry(const char* key, const std::string& entry) {
  if (names_shard(entry)) return check_shards(key, entry);
  for (const auto& file : for_setting(key, entry, [&] { return expand_files({entry}); })) check_readable(file);
}

// Calls visit(key, entry) for the entries of data.train and data.valid.
template <class Visit>
void for_each_entry(const DataSettings& data, const Visit& visit) {
  for (const auto& [key, entries] : {std::pair{"data.train", &data.train}, std::pair{"data.valid", &data.valid}})
    for (const std::string& entry : *entries) visit(key, entry);
}

}  // namespace

bool names_shard(const std::string& entry) {
  return shard_prefix(entry) != std::filesystem::path(entry) || std::filesystem::exists(shard_file(entry, ".idx"));
}

std::vector<std::string> text_entries(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries)
    if (!names_shard(entry)) out.push_back(entry);
  return out;
}

std::vector<std::filesystem::path> shards_of(const std::string& entry) {
  const bool pattern = entry.find_first_of("*?[{") != std::string::npos && !is_shard(shard_prefix(entry));
  std::vector<std::filesystem::path> prefixes;
  for (const auto& path : pattern ? expand_files({entry}) : std::vector<std::filesystem::path>{entry})
    prefixes.push_back(shard_prefix(path));
  return prefixes;
}

void refuse_without_tokenizer(const char* key, const std::string& entry) {
  throw UserError({"", "data.tokenizer", fmt::format("a tokenizer for the text in {} ({})", key, entry), "nothing",
                   "name a tokenizer.json, or train one: tokenizer: {train: bpe, vocab: 4096}"});
}

int64_t documents_of_sample(const Config& config) {
  const ObjectiveSettings& objective = config.objective;
  if (!objective.compares() || objective.pairs == Pairs::neighbours) return 0;
  if (objective.by_columns()) return objective.sequences_of_sample();
  std::vector<std::string> entries = config.data.train;
  entries.insert(entries.end(), config.data.valid.begin(), config.data.valid.end());
  const auto lines = std::ranges::count_if(entries, [](const std::string& entry) { return is_json_lines(entry); });
  if (lines > 0 && lines < std::ssize(entries))
    throw UserError({"", "data.train", "JSON lines only, or no JSON lines, because every line is a text of its own", "both",
                     "convert the text to JSON lines"});
  return lines > 0 ? 1 : 0;
}

CorpusOptions corpus_options(const Config& config) {
  const DataSettings& data = config.data;
  const ObjectiveSettings& objective = config.objective;
  CorpusOptions options;
  if (objective.by_columns()) {
    options.columns = objective.columns;
    options.columns.insert(options.columns.end(), objective.negative_columns.begin(), objective.negative_columns.end());
  } else if (documents_of_sample(config) > 0) {
    options.columns = {data.text_field};
  }
  options.text_field = data.text_field;
  options.separator = data.separator;
  options.separator_token = data.separator_token;
  return options;
}

std::vector<std::filesystem::path> files_to_train_tokenizer_on(const DataSettings& data) {
  auto files = expand_files(text_entries(data.train));
  if (files.empty())
    throw UserError({"", "data.tokenizer", "text in data.train to train a tokenizer on", "token shards only",
                     "give the tokenizer that made the shards"});
  return files;
}

void check_data_files(const DataSettings& data) {
  Mistakes mistakes;
  for_each_entry(data, [&](const char* key, const std::string& entry) {
    mistakes.none_in([&] { check_entry(key, entry); });
  });
  if (!data.cache.empty()) mistakes.none_in([&] { check_folder("data.cache", data.cache); });
  mistakes.throw_any();
}

void check_shards_only(const DataSettings& data) {
  for_each_entry(data, [](const char* key, const std::string& entry) {
    if (!names_shard(entry)) refuse_without_tokenizer(key, entry);
  });
}

}  // namespace megalith
