// Makes a data set from the files that a config names. Text is tokenized once, and the tokens are kept.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "run/run.h"
#include "run/run_directory.h"

namespace megalith {

// `tokenizer` null: all data are token shards. `say` gets a line for each text that is tokenized.
std::unique_ptr<Dataset> prepare_data(const Run& run, const RunDirectory& directory, const Tokenizer* tokenizer,
                                      const std::function<void(const std::string&)>& say);

}  // namespace megalith
