// What the entries of data.train and data.valid name, and how their text is read.
#pragma once
#include <string>
#include <vector>

#include "config/config.h"
#include "text/corpus.h"

namespace megalith {

// Whether an entry means token shards: by the name of one of their files, or by a prefix that has an index.
bool names_shard(const std::string& entry);

// The entries that are text.
std::vector<std::string> text_entries(const std::vector<std::string>& entries);

CorpusOptions corpus_options(const DataSettings& data);

}  // namespace megalith
