// This process as one rank of a run: its status page, its output, and its end.
#pragma once
#include <filesystem>
#include <string>

#include "config/config.h"
#include "launch/environment.h"
#include "launch/status_page.h"

namespace megalith::launch {

class RankProcess {
 public:
  // Create it before MPI starts and before there are threads. A process without other ranks has a page that no process
  // reads. Under a supervisor, the constructor creates the page and makes the rank die with its launcher. It keeps
  // OpenMPI's shared memory in the folder that the supervisor removes. On a host other than the supervisor's, the first
  // rank also starts the monitor of that host.
  explicit RankProcess(const Environment& environment);

  const Environment& environment() const { return environment_; }
  StatusPage& page() { return page_; }

  // Called when the run's settings are known, still before MPI and threads. From now on only rank 0 prints. The output
  // of the others goes to log-RANK.txt in the run directory. Without a supervisor, the first rank of each host starts a
  // watch.
  void begin(const RunSettings& run);

  // The last call of a rank. Reports `message` (empty if everything has been said) to the supervisor, which prints it
  // once. Without a supervisor it goes to stderr. Returns the exit code of the process. Under a supervisor an
  // interrupted rank exits with 0, as mpirun would kill the other ranks for any other code.
  int end(ExitCode code, const std::string& message);

 private:
  void join_supervisor();
  void share_page(const std::filesystem::path& folder);
  Environment environment_;
  StatusPage page_;
  bool logging_ = false;
};

}  // namespace megalith::launch
