// One start of all ranks: from starting mpirun until no process of it is left on any host.
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
  std::vector<std::string> command;  // command line of a rank
  int ranks = 1;
  std::vector<HostSlots> hosts;      // empty: this host, or the nodes of the Slurm job
  bool several_hosts = false;
  std::string interface;             // --interface; empty: the interface that leads to the other hosts
  int64_t watchdog = 0;              // run.watchdog
  std::filesystem::path run_dir;     // for log-mpirun.txt
};

struct Outcome {
  enum class Kind {
    ended,        // every rank exited normally; `code` is rank 0's exit code
    failed,       // a rank reported an error: `message` (with its rank) and `code`
    crashed,      // a rank, mpirun or a host died: `message` says which
    hung,         // stopped by the watchdog: `message` names the rank at fault
    not_started,  // mpirun could not start the ranks: `message` is mpirun's error
    stopped,      // stopped by the user's second signal, or before the ranks could save
  };
  Kind kind = Kind::ended;
  ExitCode code = ExitCode::done;
  std::string message;
  std::vector<HostSlots> hosts_left;  // the hosts that still answer, if one was lost; otherwise empty
};

class Attempt {
 public:
  Attempt(AttemptSettings settings, StopRequests& requests);
  ~Attempt();  // kills every process of this attempt
  Outcome run();

 private:
  // The state of one host, and the connection to its monitor.
  struct Host {
    std::string name;
    MessageLine line;
    std::vector<RankView> ranks;
    double silent_s = 0;
    bool away = false;
  };
  void start();
  void wait_and_listen();      // waits up to 100 ms for messages
  void hear(Host& host);
  void pass_signals_on();
  void judge(double passed_s); // ends the attempt if a rank died, a host is lost or an op hangs
  void end(double patience_s); // ends mpirun, which ends the ranks
  bool settled() const;        // true if mpirun has ended and no more messages are expected
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
  std::optional<int> status_;        // mpirun's wait status, once mpirun has ended
  double since_end_s_ = 0;           // since mpirun ended
  MpirunSays says_;
  Watchdog watchdog_;
  int passed_on_ = 0;                // number of the user's signals passed on so far
  double trouble_s_ = -1;            // since a rank died or failed; -1: no rank did
  std::optional<RankView> first_dead_;
  std::string hung_, lost_host_;
};

}  // namespace megalith::launch
