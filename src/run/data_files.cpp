#include "run/data_files.h"

#include <filesystem>

#include "text/shards.h"

namespace megalith {

bool names_shard(const std::string& entry) {
  return shard_prefix(entry) != std::filesystem::path(entry) || std::filesystem::exists(shard_file(entry, ".idx"));
}

std::vector<std::string> text_entries(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries)
    if (!names_shard(entry)) out.push_back(entry);
  return out;
}

CorpusOptions corpus_options(const DataSettings& data) {
  CorpusOptions options;
  options.text_field = data.text_field;
  options.separator = data.separator;
  options.separator_token = data.separator_token;
  return options;
}

}  // namespace megalith
