// How OpenMPI's mpirun is called, and what it says when something went wrong.
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
// "a:2,b:2"; a host without a number has one slot. UserError for anything else.
std::vector<HostSlots> parse_hosts(const std::string& text);

using Variables = std::vector<std::pair<std::string, std::string>>;  // environment variables

struct MpirunCall {
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this one, or what a Slurm job has
  bool several_hosts = false;
  std::string networks = kLoopback;  // where all that OpenMPI starts may listen
  std::vector<std::string> command;  // of a rank
  std::filesystem::path folder;      // for its session files
  Variables environment;             // for the ranks, on all hosts
};

// UserError that names the package when there is none in PATH.
std::string find_mpirun();
std::vector<std::string> mpirun_command(const std::string& mpirun, const MpirunCall& call);
// Settings of OpenMPI. What the user has set stays: `get` is getenv. `guard` is the library of src/bind_guard.cpp.
// Networks that the user has given OpenMPI for several hosts stay, without the guard.
Variables mpirun_environment(const MpirunCall& call, const std::string& guard, bool root,
                             const std::function<const char*(const char*)>& get);

// The lines of mpirun's stderr, sorted: the ranks' own go on, its own are kept.
class MpirunSays {
 public:
  // Text as it comes; returns what the ranks said.
  std::string take(const std::string& text);
  std::string rest();  // the last line, where it has no end

  struct Death {
    int rank = 0, signal = 0;
    std::string host;
  };
  std::optional<Death> death() const;  // the first rank that a signal ended
  const std::string& own() const { return own_; }
  std::string first_words() const;     // its own first paragraph, in one line of a few hundred letters

 private:
  std::string line_, own_;
  bool in_banner_ = false;
};

}  // namespace megalith::launch
