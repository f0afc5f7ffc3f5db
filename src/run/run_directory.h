// The folder of a run: its lock and its paths.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

class RunDirectory {
 public:
  // Makes the folder, locks it and removes half-written files of a killed process. Throws UserError if the folder cannot be
  // written or another process trains there. If `leads` is false, it does nothing: another rank has the lock.
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
