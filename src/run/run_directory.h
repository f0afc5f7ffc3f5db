// The folder one run leaves: who holds it, what is where.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// UserError where the folder could not be made or written. Makes nothing.
void check_run_directory(const std::filesystem::path& path);

class RunDirectory {
 public:
  // Makes the folder, takes a lock on it and removes files that a killed process left half-written. UserError when it
  // cannot be written or another process trains there. A rank that does not lead looks on: the folder is another rank's.
  explicit RunDirectory(const std::filesystem::path& path, bool leads = true);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace megalith
