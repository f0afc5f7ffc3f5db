// What started this process: nobody (a run of its own), our supervisor, or the user's own mpirun or srun.
#pragma once
#include <functional>
#include <string>

namespace megalith::launch {

enum class Role {
  alone,       // one process, or the one that will supervise
  supervised,  // a rank below `megalith train --ranks N`
  joined,      // a rank below the user's own mpirun or srun
};

struct Environment {
  Role role = Role::alone;
  int rank = 0, size = 1;              // in the whole run
  int local_rank = 0, local_size = 1;  // among the ranks of this host
  bool several() const { return size > 1; }
};

// `get` is getenv or a test's own. Numbers that are not numbers are as if not set.
Environment environment(const std::function<const char*(const char*)>& get);
Environment environment();

// The variable by which a supervisor tells ranks how to reach it; see rank_process.h.
inline constexpr const char* kSupervisorVariable = "MEGALITH_SUPERVISOR";
// The supervisor's terminal, which rank 0 writes to; not set where stderr is none.
inline constexpr const char* kTerminalVariable = "MEGALITH_TERMINAL";

// A host as ranks see it: its name and the kernel that runs there, as names alone may be the same on two machines.
std::string host_name();
std::string host_identity();

}  // namespace megalith::launch
