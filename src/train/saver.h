// Checkpoints of a run: what goes into one, written by the save ops of a schedule, in the background.
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

// One checkpoint being written. A fault of the disk ends it with a warning; the run goes on and the checkpoints
// before it stay as they are.
class Save final : public CheckpointSink {
 public:
  // Of several ranks all make theirs at the same time: rank 0 begins the files, the others write their parts of them, or,
  // where they do not see them, send their parts to rank 0. Both pointers are borrowed; `remote` null: all see them.
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
  bool sends_ = false;  // a remote rank: rank 0 takes its parts
  std::mutex writing_;  // parts from remote hosts come on threads of their own
  std::unique_ptr<CheckpointWriter> writer_;  // null once given up, and on a remote host
  bool done_ = false;
};

class Saver {
 public:
  // `tokenizer` may be null. Borrows the model.
  Saver(std::filesystem::path checkpoints, StatePieces& model, const Tokenizer* tokenizer, int64_t keep,
        ProcessGroups* groups = nullptr, RemoteHosts* remote = nullptr);
  // The state after `step` steps; hand it to the next schedule that saves. `state` becomes state.json.
  std::unique_ptr<Save> begin(int64_t step, const nlohmann::json& state);
  // After that schedule ran: removes old checkpoints; true when it is there.
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
