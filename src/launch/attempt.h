// One start of all ranks, from mpirun's first breath until nothing of it is left on any host.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/door.h"
#include "launch/host_folder.h"
#include "launch/message_line.h"
#include "launch/mpirun.h"
#include "launch/rank_view.h"
#include "launch/stop_requests.h"
#include "launch/watchdog.h"

namespace megalith::launch {

struct AttemptSettings {
  std::vector<std::string> command;  // of a rank
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this one, or what a Slurm job has
  bool several_hosts = false;
  std::string interface;             // --interface; empty: what leads to the other hosts
  int64_t watchdog = 0;              // run.watchdog
  std::filesystem::path run_dir;     // for mpirun's own words
};

struct Outcome {
  enum class Kind {
    ended,        // every rank left by itself; `code` is rank 0's
    failed,       // a rank said what went wrong: `message`, with its rank, and `code`
    crashed,      // a rank, mpirun or a host is gone: `message` says which
    hung,         // stopped by the watchdog: `message` names the culprit
    not_started,  // mpirun could not start the ranks: `message` is its own
    stopped,      // by the user's second signal, or before the ranks could save
  };
  Kind kind = Kind::ended;
  ExitCode code = ExitCode::done;
  std::string message;
  std::vector<HostSlots> hosts_left;  // after `crashed` where a host was lost; empty: none was
};

class Attempt {
 public:
  Attempt(AttemptSettings settings, StopRequests& requests);
  ~Attempt();  // leaves nothing alive
  Outcome run();

 private:
  // A host's monitor, at the other end.
  struct Host {
    std::string name;
    MessageLine line;
    std::vector<RankView> ranks;
    double silent_s = 0;
    bool away = false;
  };
  void start();
  void wait_and_listen();      // up to a tenth of a second
  void hear(Host& host);
  void pass_signals_on();
  void judge(double passed_s); // whether this must end
  void end(double patience_s); // mpirun, and with it the ranks
  bool settled() const;        // after mpirun: nothing more will be learnt
  std::vector<RankView> ranks() const;
  Outcome outcome();
  std::string describe_crash() const;
  void keep_words();

  AttemptSettings settings_;
  StopRequests& requests_;
  std::string run_ = new_run_name();
  std::optional<HostFolder> folder_;
  std::optional<Door> door_;
  std::vector<Host> hosts_;
  pid_t monitor_ = -1, mpirun_ = -1;
  int words_fd_ = -1;                // mpirun's stderr
  std::optional<int> status_;        // mpirun's, once it is gone
  double since_end_s_ = 0;           // since mpirun is gone
  MpirunSays says_;
  Watchdog watchdog_;
  int passed_on_ = 0;                // the user's signals so far
  double trouble_s_ = -1;            // since a rank died or failed; -1: none did
  std::optional<RankView> first_dead_;
  std::string hung_, lost_host_;
};

}  // namespace megalith::launch
