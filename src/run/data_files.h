// The meaning of the entries of data.train and data.valid, and the options to read their text.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "text/corpus.h"

namespace megalith {

// True if an entry names token shards: by the name of one of their files, or by a prefix that has an index.
bool names_shard(const std::string& entry);

// The shards that an entry means, by prefix.
std::vector<std::filesystem::path> shards_of(const std::string& entry);

// Throws UserError: `key` has text, but there is no tokenizer.
[[noreturn]] void refuse_without_tokenizer(const char* key, const std::string& entry);

// The entries that are text.
std::vector<std::string> text_entries(const std::vector<std::string>& entries);

CorpusOptions corpus_options(const Config& config);

// Returns how many documents a sample is; 0 if samples are windows of a stream. Throws UserError if data.train and data.valid
// mix both kinds.
int64_t documents_of_sample(const Config& config);

// Returns the text files that a tokenizer is trained on. Throws UserError if data.train has no text.
std::vector<std::filesystem::path> files_to_train_tokenizer_on(const DataSettings& data);

// Checks that all files of data.train and data.valid exist and can be opened, that shards have the right form, and that
// data.cache can be a folder. Does not read the text. Throws UserError that lists all mistakes.
void check_data_files(const DataSettings& data);

// Throws UserError if there is text. For runs without a tokenizer.
void check_shards_only(const DataSettings& data);

}  // namespace megalith
