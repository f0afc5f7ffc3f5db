// The folder of one run, in memory: RUN/HOST with status pages and shared memory, and beside it OpenMPI's session
// files, so that nothing is left anywhere else. Who holds a host's lock owns it; a run that nobody holds is left over
// and goes with the next start.
#pragma once
#include <filesystem>
#include <string>

namespace megalith::launch {

// `run` names this start of the run, the same on all hosts. Everybody can list the names; only this user can enter the
// folders.
std::filesystem::path run_folder_path(const std::string& run);
std::filesystem::path host_folder_path(const std::string& run);  // this host's part
std::filesystem::path make_host_folder(const std::string& run);  // Fault if it cannot be made, or others can enter it

class HostFolder {
 public:
  explicit HostFolder(const std::string& run);  // makes and locks it; Fault when it cannot
  ~HostFolder();                                // leaves the lock; `remove` removes
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  int lock() const { return lock_; }  // the descriptor, for who must keep it open
  void remove() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

void remove_left_over_folders();  // of this user
std::string new_run_name();

}  // namespace megalith::launch
