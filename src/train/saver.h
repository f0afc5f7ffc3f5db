// Checkpoints of a run: what goes into one, written by the save ops of a schedule, in the background.
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/writer.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

namespace megalith {

inline constexpr int64_t kShardLimit = int64_t{5} << 30;  // bytes a file of weights, as Hugging Face splits

DType dtype_of(PartType type);  // as files have it

// One checkpoint being written. A fault of the disk ends it with a warning; the run goes on and the checkpoints
// before it stay as they are.
class Save final : public PartSink {
 public:
  Save(std::filesystem::path dir, std::vector<FileSpec> files, std::vector<std::pair<std::string, std::string>> small_files,
       nlohmann::json state);
  void write(Kind kind, const NamedPart& part) override;
  void commit() override;
  bool done() const { return done_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  void give_up(const std::exception& fault);
  std::filesystem::path dir_;
  std::vector<std::pair<std::string, std::string>> file_of_;  // tensor name -> file, sorted
  nlohmann::json state_;
  std::unique_ptr<CheckpointWriter> writer_;  // null once given up
  bool done_ = false;
};

class Saver {
 public:
  // `tokenizer` may be null. Borrows the model.
  Saver(std::filesystem::path checkpoints, ModelState& model, const Tokenizer* tokenizer, int64_t keep);
  // The state after `step` steps; hand it to the next schedule that saves. `state` becomes state.json.
  std::unique_ptr<Save> begin(int64_t step, const nlohmann::json& state);
  // After that schedule ran: removes old checkpoints; true when it is there.
  bool finish(const Save& save, int64_t step);

 private:
  std::filesystem::path checkpoints_;
  std::vector<FileSpec> files_;
  std::vector<std::pair<std::string, std::string>> small_files_;
  int64_t keep_;
};

}  // namespace megalith
