// Checkpoints of a run. The save ops of a schedule write them in the background.
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/writer.h"
#include "engine/engine.h"
#include "text/tokenizer.h"
#include "train/remote_hosts.h"

namespace megalith {

// One checkpoint while it is written. If the disk fails, the save ends with a warning. The run continues, and earlier
// checkpoints do not change.
class Save final : public CheckpointSink {
 public:
  // With several ranks, all ranks construct this object at the same time. Rank 0 creates the files, and the others write
  // their parts into them. Ranks that do not see the files send their parts to rank 0. Both pointers are borrowed; `remote`
  // null: all ranks see the files.
  Save(std::filesystem::path dir, std::vector<FileSpec> files, std::vector<std::pair<std::string, std::string>> small_files,
       const nlohmann::json& state, ProcessGroups* groups, RemoteHosts* remote);
  ~Save() override;
  void write(Kind kind, const TensorPiece& part) override;
  void commit() override;
  bool done() const { return done_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  void give_up(const std::string& why);
  void begin_together(std::vector<FileSpec> files, std::vector<std::pair<std::string, std::string>> small_files);
  void commit_together();
  void write_as(const std::string& name, const TensorPiece& part);
  void write_here(const std::string& file, const std::string& tensor, int64_t element, std::span<const std::byte> bytes);
  std::filesystem::path dir_;
  std::vector<std::pair<std::string, std::string>> file_of_;  // tensor name -> file, sorted
  std::unique_ptr<const nlohmann::json> state_;
  ProcessGroups* groups_;
  RemoteHosts* remote_;
  std::string fault_;  // why this rank gave up
  bool sends_ = false;  // this rank is remote and sends its parts to rank 0
  std::mutex writing_;  // parts from remote hosts arrive on other threads
  std::unique_ptr<CheckpointWriter> writer_;  // null once given up, and on a remote host
  bool done_ = false;
};

class Saver {
 public:
  // `tokenizer` may be null. `longest`: tokens of the longest training sequence. Borrows the model.
  Saver(std::filesystem::path checkpoints, StatePieces& model, const Tokenizer* tokenizer, int64_t longest, int64_t keep,
        ProcessGroups* groups = nullptr, RemoteHosts* remote = nullptr);
  // Begins a checkpoint of the state after `step` steps. The next schedule that saves writes it. `state` becomes state.json.
  std::unique_ptr<Save> begin(int64_t step, const nlohmann::json& state);
  // Call it after that schedule ran. Removes old checkpoints. Returns true if the checkpoint is complete.
  bool finish(const Save& save, int64_t step);

 private:
  std::filesystem::path checkpoints_;
  std::vector<FileSpec> files_;
  std::vector<std::pair<std::string, std::string>> small_files_;
  int64_t keep_;
  ProcessGroups* groups_;
  RemoteHosts* remote_;
};

}  // namespace megalith
