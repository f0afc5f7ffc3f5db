// This process as one rank of a run: where it reports, how it ends, where its output goes.
#pragma once
#include <filesystem>
#include <string>

#include "config/config.h"
#include "launch/environment.h"
#include "launch/status_page.h"

namespace megalith::launch {

class RankProcess {
 public:
  // To be made before MPI starts and before there are threads. A process alone has a page that nobody reads.
  // Under a supervisor: makes the page, dies with its launcher, keeps OpenMPI's shared memory where the supervisor
  // removes it, and on another host than the supervisor's starts that host's monitor (the first rank there does).
  explicit RankProcess(const Environment& environment);

  const Environment& environment() const { return environment_; }
  StatusPage& page() { return page_; }

  // Once the run's settings are known, and still before MPI and threads: rank 0 speaks for all from now on, the others'
  // output goes to log-RANK.txt in the run directory; without a supervisor the ranks of each host get a watch.
  void begin(const RunSettings& run);

  // The last thing a rank does. Says what went wrong (`message`, empty where all is said): to the supervisor, which
  // prints it once; without one on stderr. Returns what the process must exit with: under a supervisor an
  // interrupted rank leaves with 0, as mpirun would kill the others for any other number.
  int end(ExitCode code, const std::string& message);

 private:
  void join_supervisor();
  void share_page(const std::filesystem::path& folder);
  Environment environment_;
  StatusPage page_;
  bool logging_ = false;
};

}  // namespace megalith::launch
