#include "launch/host_monitor.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "launch/message_line.h"
#include "launch/process.h"
#include "launch/rank_view.h"

namespace megalith::launch {
namespace {

constexpr int kPoll_ms = 100;
constexpr double kTell_s = 0.25;             // between messages when nothing changes
constexpr double kSupervisorSilence_s = 20;  // a supervisor on another host that is silent for longer counts as dead
constexpr double kOrderly_s = 4;             // time that a launcher gets to clean up
constexpr double kStubborn_s = 10;           // then time for processes that hang inside the kernel

class HostMonitor {
 public:
  HostMonitor(int socket, const HostFolder& folder, MonitorPlace place) : line_(socket), folder_(folder), place_(place) {}

  void run() {
    double told = 0, heard = monotonic_seconds();
    while (line_.open()) {
      look();
      const double now = monotonic_seconds();
      std::string changes;
      for (const RankView& rank : ranks_)
        changes += fmt::format("{} {} {};", rank.rank, static_cast<int>(rank.life), static_cast<int>(rank.state));
      if (changes != changes_ || now - told >= kTell_s) {
        tell();
        changes_ = changes;
        told = now;
      }
      pollfd wait{line_.socket(), POLLIN, 0};
      ::poll(&wait, 1, kPoll_ms);
      for (const nlohmann::json& message : line_.receive()) {
        heard = monotonic_seconds();
        obey(message);
      }
      if (place_ == MonitorPlace::away && now - heard > kSupervisorSilence_s) break;
    }
    clear_up();
  }

 private:
  void look() {
    ranks_ = look_at_ranks(folder_.path());
    for (const RankView& rank : ranks_) {
      if (rank.life == Life::dead) continue;
      // On another host the launcher is the daemon (orted) above its ranks.
      if (auto stat = process_stat(rank.pid); stat && place_ == MonitorPlace::away && process_name(stat->parent) == "orted")
        launcher_ = stat->parent;
    }
  }

  void tell() {
    nlohmann::json ranks = nlohmann::json::array();
    for (const RankView& rank : ranks_) ranks.push_back(to_json(rank));
    line_.send({{"ranks", std::move(ranks)}});
  }

  void obey(const nlohmann::json& message) {
    if (message.contains("launcher")) launcher_ = message["launcher"];
    if (!message.contains("signal")) return;
    for (const RankView& rank : ranks_)
      if (rank.life != Life::dead) ::kill(rank.pid, message["signal"].get<int>());
  }

  bool all_gone() {
    look();
    bool gone = launcher_ == 0 || is_dead(process_stat(launcher_));
    for (const RankView& rank : ranks_) gone = gone && rank.life == Life::dead;
    return gone;
  }

  void clear_up() {
    const double until = monotonic_seconds() + kOrderly_s, at_most = until + kStubborn_s;
    // On the supervisor's host, mpirun gets SIGTERM as its death signal. A second SIGTERM would make it stop at once.
    if (place_ == MonitorPlace::away && launcher_ != 0) ::kill(launcher_, SIGTERM);
    while (!all_gone() && monotonic_seconds() < at_most) {
      for (const RankView& rank : ranks_)
        if (rank.life != Life::dead) ::kill(rank.pid, SIGKILL);
      if (monotonic_seconds() > until && launcher_ != 0) ::kill(launcher_, SIGKILL);
      ::usleep(20000);
    }
    folder_.remove();
  }

  MessageLine line_;
  const HostFolder& folder_;
  MonitorPlace place_;
  pid_t launcher_ = 0;
  std::vector<RankView> ranks_;
  std::string changes_;
};

}  // namespace

pid_t fork_host_monitor(int socket, const HostFolder& folder, MonitorPlace place) {
  return fork_beside(place == MonitorPlace::away, {socket, folder.lock()}, [&] { HostMonitor(socket, folder, place).run(); });
}

}  // namespace megalith::launch
