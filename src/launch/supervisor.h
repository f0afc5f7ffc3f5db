// `megalith train run.yaml --ranks N`: starts the ranks, watches them, and restarts them after a crash.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/mpirun.h"

namespace megalith::launch {

struct Job {
  std::vector<std::string> command;  // command line of a rank: this program with the same arguments
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this host, or the nodes of the Slurm job
  // --interface: the network between several hosts. Empty: the interface that leads to these hosts.
  std::string interface;
  int64_t restarts = 3, watchdog = 0;  // run.restarts, run.watchdog
  std::filesystem::path run_dir;
  // Returns the newest valid checkpoint, or an empty path if there is none.
  std::function<std::string()> last_checkpoint;
  // Returns the largest number of ranks, up to `available`, that the run can use; 0 if there is none.
  std::function<int(int available)> layout_for;
};

struct Ending {
  ExitCode code = ExitCode::done;
  std::string message;  // empty: the ranks have already reported everything
};

// Throws UserError if there is no mpirun.
Ending supervise(Job job);

// The path by which ranks start this program, instead of argv[0]. In the engine program it is the path of `megalith`
// beside it.
std::string own_path();
// The engine program, in the same folder as this program.
std::string engine_path();
// The library of src/bind_guard.cpp, in the same folder as this program. Throws UserError if OpenMPI cannot load it.
std::string bind_guard_path();
std::vector<std::string> own_command(int argc, char** argv);

}  // namespace megalith::launch
