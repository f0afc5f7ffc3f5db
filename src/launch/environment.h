// Finds out what started this process: the user directly, our supervisor, or the user's own mpirun or srun.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace megalith::launch {

enum class Role {
  alone,       // one process that may become the supervisor
  supervised,  // a rank that `megalith train --ranks N` started
  joined,      // a rank that the user's own mpirun or srun started
};

struct Environment {
  Role role = Role::alone;
  int rank = 0, size = 1;              // in the whole run
  int local_rank = 0, local_size = 1;  // among the ranks of this host
  bool several() const { return size > 1; }
  // What gave the number of ranks, for messages.
  std::string_view ranks_from() const { return role == Role::joined ? "mpirun or srun" : "--ranks"; }
};

// `get` is getenv, or a substitute in tests. A number that cannot be parsed counts as not set.
Environment environment(const std::function<const char*(const char*)>& get);
Environment environment();

// The supervisor writes into this variable how ranks can reach it; see rank_process.h.
inline constexpr const char* kSupervisorVariable = "MEGALITH_SUPERVISOR";
// The supervisor's terminal, which rank 0 writes to. Not set if stderr is not a terminal.
inline constexpr const char* kTerminalVariable = "MEGALITH_TERMINAL";

// The host name, and the host name with the kernel's boot id: two machines may have the same name.
std::string host_name();
std::string host_identity();

}  // namespace megalith::launch
