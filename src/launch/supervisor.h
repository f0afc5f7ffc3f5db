// `megalith train run.yaml --ranks N`: starts the ranks, watches them, starts them again after a crash.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/mpirun.h"

namespace megalith::launch {

struct Job {
  std::vector<std::string> command;  // of a rank: this program with its own arguments
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this host, or what a Slurm job has
  std::string interface;             // --interface: the network of several hosts; empty: what leads to them
  int64_t restarts = 3, watchdog = 0;  // run.restarts, run.watchdog
  std::filesystem::path run_dir;
  // The newest valid checkpoint; empty: none.
  std::function<std::string()> last_checkpoint;
  // The most ranks, up to `available`, that the run can be laid out on; 0: none.
  std::function<int(int available)> layout_for;
};

struct Ending {
  ExitCode code = ExitCode::done;
  std::string message;  // empty: the ranks have said all
};

// UserError when there is no mpirun.
Ending supervise(Job job);

// This program, as a rank must be started: its own path instead of argv[0]. Of the engine program it is the path of
// `megalith` beside it.
std::string own_path();
// The engine program, which lies beside this one.
std::string engine_path();
// The library of src/bind_guard.cpp, which lies beside this program. UserError if OpenMPI cannot load it.
std::string bind_guard_path();
std::vector<std::string> own_command(int argc, char** argv);

}  // namespace megalith::launch
