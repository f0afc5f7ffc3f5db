// From the files a config names to a data set: tokenizer trained or loaded, text tokenized once and kept.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "config/config.h"
#include "data/dataset.h"
#include "run/run_directory.h"
#include "text/tokenizer.h"

namespace megalith {

// The run's tokenizer: the one in the run directory if the run has begun, else the config's file, else trained on
// data.train, else the one beside model.from; null where all data are token shards. Kept as tokenizer.json.
std::unique_ptr<Tokenizer> prepare_tokenizer(const Config& config, const RunDirectory& run,
                                             const std::function<void(const std::string&)>& say);

std::unique_ptr<Dataset> prepare_data(const Config& config, const RunDirectory& run, const Tokenizer* tokenizer,
                                      const std::function<void(const std::string&)>& say);

}  // namespace megalith
