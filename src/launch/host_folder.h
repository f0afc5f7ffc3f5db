// The folder of one run, in /dev/shm. RUN/HOST holds status pages and shared memory. OpenMPI's session files are beside
// it, so that no file is left anywhere else. The process that holds the lock of a host's folder owns it. The next start
// removes run folders without a lock holder.
#pragma once
#include <filesystem>
#include <string>

namespace megalith::launch {

// `run` names this start of the run and is the same on all hosts. All users can list the names. Only this user can enter
// the folders.
std::filesystem::path run_folder_path(const std::string& run);
std::filesystem::path host_folder_path(const std::string& run);  // RUN/HOST
// Throws Fault if the folder cannot be created, or if other users can enter it.
std::filesystem::path make_host_folder(const std::string& run);

class HostFolder {
 public:
  explicit HostFolder(const std::string& run);  // creates and locks it; throws Fault if it cannot
  ~HostFolder();                                // releases the lock; the folder stays until remove()
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  int lock() const { return lock_; }  // the descriptor, for a child process that must keep it open
  void remove() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

void remove_left_over_folders();  // only those of this user
std::string new_run_name();

}  // namespace megalith::launch
