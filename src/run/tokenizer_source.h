// The sources of a run's tokenizer. A run that has a checkpoint takes the tokenizer of its run directory. Otherwise it is
// the file in the config, or one trained on data.train, or the one in the folder of model.from.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "run/run_directory.h"
#include "text/tokenizer.h"

namespace megalith {

class TokenizerSource {
 public:
  virtual ~TokenizerSource() = default;
  // Finds the tokenizer and keeps it loaded, because its memory counts as memory of the process. Returns the size of the
  // vocabulary, or 0 if all data are token shards. May add a line to `notes` that says where it comes from.
  virtual int64_t vocabulary(const Config& config, std::vector<std::string>& notes) = 0;
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null: none is loaded

 protected:
  std::unique_ptr<Tokenizer> tokenizer_;
};

// Trains a tokenizer if the config asks for one, and keeps its files in the run directory (borrowed).
class KeptTokenizer final : public TokenizerSource {
 public:
  KeptTokenizer(const RunDirectory& directory, std::function<void(const std::string&)> say)
      : directory_(directory), say_(std::move(say)) {}
  int64_t vocabulary(const Config& config, std::vector<std::string>& notes) override;

 private:
  const RunDirectory& directory_;
  std::function<void(const std::string&)> say_;
};

// Writes no files. If the tokenizer must still be trained, only its size is known.
class ForeseenTokenizer final : public TokenizerSource {
 public:
  explicit ForeseenTokenizer(bool begun) : begun_(begun) {}  // whether the run has a checkpoint
  int64_t vocabulary(const Config& config, std::vector<std::string>& notes) override;

 private:
  bool begun_;
};

}  // namespace megalith
