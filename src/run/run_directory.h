// The folder one run leaves: who holds it, what is where, what was decided when it began.
#pragma once
#include <filesystem>
#include <optional>

#include "config/config.h"

namespace megalith {

class RunDirectory {
 public:
  // Makes the folder and takes a lock on it. UserError when it cannot be written or another process trains there.
  // A rank that does not lead looks on: the folder is another rank's.
  explicit RunDirectory(const std::filesystem::path& path, bool leads = true);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  const std::filesystem::path& path() const { return path_; }

  void save_config(const Config& config) const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// The config that the run in that folder began with, as its config.yaml has it. The folder need not be held.
std::optional<Config> saved_config(const std::filesystem::path& run_dir);

// What a resumed run goes on with: `now` with the saved run's own decisions kept. UserError listing the keys when
// a setting changed that cannot; harmless changes are logged.
Config continue_config(const Config& saved, const Config& now);

}  // namespace megalith
