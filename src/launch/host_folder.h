// The folder of one run, in memory: RUN/HOST with status pages and shared memory, and beside it OpenMPI's session
// files, so that nothing is left anywhere else. Who holds a host's lock owns it; a run that nobody holds is left over
// and goes with the next start.
#pragma once
#include <filesystem>
#include <string>

namespace megalith::launch {

// `token` names the run, the same on all hosts.
std::filesystem::path run_folder_path(const std::string& token);
std::filesystem::path host_folder_path(const std::string& token);  // this host's part

class HostFolder {
 public:
  explicit HostFolder(const std::string& token);  // makes and locks it; Fault when it cannot
  ~HostFolder();                                  // leaves the lock; `remove` removes
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
std::string new_token();

}  // namespace megalith::launch
