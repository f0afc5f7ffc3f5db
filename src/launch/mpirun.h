// Builds the command line of OpenMPI's mpirun, and reads what mpirun says if something fails.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/network.h"

namespace megalith::launch {

struct HostSlots {
  std::string host;
  int slots = 0;
};
// Parses "a:2,b:2". A host without a number has one slot. Throws UserError for anything else.
std::vector<HostSlots> parse_hosts(const std::string& text);

using Variables = std::vector<std::pair<std::string, std::string>>;  // environment variables

struct MpirunCall {
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this host, or the nodes of the Slurm job
  bool several_hosts = false;
  std::string networks = kLoopback;  // networks on which everything that OpenMPI starts may listen
  std::vector<std::string> command;  // command line of a rank
  std::filesystem::path folder;      // for OpenMPI's session files
  Variables environment;             // for the ranks, on all hosts
};

// Throws a UserError that names the package if PATH has no mpirun.
std::string find_mpirun();
std::vector<std::string> mpirun_command(const std::string& mpirun, const MpirunCall& call);
// Returns the environment variables for OpenMPI, without those that the user has set. `get` is getenv. `guard` is the
// library of src/bind_guard.cpp. It is not used for several hosts if the user's variables name the networks.
Variables mpirun_environment(const MpirunCall& call, const std::string& guard, bool root,
                             const std::function<const char*(const char*)>& get);

// Sorts the lines of mpirun's stderr: output of ranks is returned, mpirun's own messages are kept.
class MpirunSays {
 public:
  // Takes text in any portions. Returns what the ranks wrote.
  std::string take(const std::string& text);
  std::string rest();  // the last line, if it has no line end

  struct Death {
    int rank = 0, signal = 0;
    std::string host;
  };
  std::optional<Death> death() const;  // the first rank that a signal ended
  const std::string& own() const { return own_; }
  std::string first_words() const;     // mpirun's first paragraph as one line, about 300 characters

 private:
  std::string line_, own_;
  bool in_banner_ = false;
};

}  // namespace megalith::launch
