#include "launch/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/stop_signals.h"
#include "launch/environment.h"
#include "launch/host_link.h"
#include "launch/network.h"
#include "launch/process.h"
#include "launch/rank_table.h"
#include "launch/diagnosis.h"
#include "launch/host_monitor.h"
#include "launch/slurm.h"
#include "launch/supervisor.h"

namespace megalith::launch {
namespace {

constexpr int kListen_ms = 100;
constexpr double kLongestLook_s = 1;   // longest gap between checks that counts; a longer one means that we were suspended
constexpr double kTrouble_s = 4;       // time that mpirun gets to end a run in which a rank died
constexpr double kHostSilence_s = 4;   // a host that is silent for longer is lost
constexpr double kSettle_s = 1;        // time that the monitors get for their last messages
constexpr double kPatience_s = 3;      // time that mpirun gets to end the ranks

std::string terminal() {
  const char* name = ::isatty(STDERR_FILENO) ? ::ttyname(STDERR_FILENO) : nullptr;
  return name ? name : "";
}

std::string what_it_did(const RankView& rank) {
  if (rank.lanes.empty()) return rank.state == RankState::starting ? "while starting" : fmt::format("at step {}", rank.step);
  return fmt::format("at step {} in {}", rank.step, describe(rank.lanes.front()));
}

// In a Slurm job without --hosts, Slurm gives the addresses of its nodes.
std::vector<std::string> names_of_hosts(const std::vector<HostSlots>& hosts) {
  if (hosts.empty()) return addresses_of_nodes();
  std::vector<std::string> names;
  for (const HostSlots& host : hosts) names.push_back(host.host);
  return names;
}

}  // namespace

Attempt::Attempt(AttemptSettings settings, StopRequests& requests)
    : settings_(std::move(settings)), requests_(requests), watchdog_(settings_.watchdog) {}

Attempt::~Attempt() {
  end(0);
  hosts_.clear();  // closes the connections; the monitors then kill what is left
  if (monitor_ > 0) ::waitpid(monitor_, nullptr, 0);
  kill_descendants();
  if (words_fd_ >= 0) ::close(words_fd_);
}

void Attempt::start() {
  const std::string mpirun = find_mpirun(), guard = bind_guard_path();
  std::optional<Network> network;
  if (settings_.several_hosts)
    network = choose_network(settings_.interface, own_addresses(), routes_to(names_of_hosts(settings_.hosts)));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans among our descendants become our children
  folder_.emplace(run_);
  int pair[2], words[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || ::pipe2(words, O_CLOEXEC) != 0)
    throw Fault(fmt::format("cannot create the socket of the ranks' supervisor: {}", std::strerror(errno)));
  std::fflush(nullptr);
  monitor_ = fork_host_monitor(pair[1], *folder_, MonitorPlace::beside_supervisor);
  ::close(pair[1]);
  hosts_.push_back({host_name(), MessageLine(pair[0]), {}, 0, false});
  SupervisorAddress address{run_, host_identity(), {}, 0, {}};
  MpirunCall call{settings_.ranks, settings_.hosts, settings_.several_hosts, kLoopback, settings_.command,
                  run_folder_path(run_), {}};
  if (network) {
    address.secret = new_secret();
    door_.emplace(network->address, address.secret);
    address.address = network->address;
    address.port = door_->port();
    call.networks = network->included;
  }
  call.environment.emplace_back(kSupervisorVariable, address.text());
  if (std::string name = terminal(); !name.empty()) call.environment.emplace_back(kTerminalVariable, name);
  words_fd_ = words[0];
  ::fcntl(words_fd_, F_SETFL, O_NONBLOCK);
  SpawnOptions options{mpirun_environment(call, guard, ::geteuid() == 0, ::getenv), words[1], SIGTERM};
  mpirun_ = spawn(mpirun_command(mpirun, call), options);
  ::close(words[1]);
  hosts_.front().line.send({{"launcher", mpirun_}});
}

Outcome Attempt::run() {
  start();
  for (double before = monotonic_seconds(); !settled();) {
    wait_and_listen();
    const double now = monotonic_seconds(), passed_s = std::min(now - before, kLongestLook_s);
    before = now;
    pass_signals_on();
    judge(passed_s);
    if (!status_) {
      int status = 0;
      if (::waitpid(mpirun_, &status, WNOHANG) == mpirun_) status_ = status;
    } else {
      since_end_s_ += passed_s;
    }
  }
  return outcome();
}

void Attempt::wait_and_listen() {
  std::vector<pollfd> wait{{requests_.descriptor(), POLLIN, 0}, {words_fd_, POLLIN, 0}};
  if (door_) door_->add_to(wait);
  for (const Host& host : hosts_)
    if (host.line.open()) wait.push_back({host.line.socket(), POLLIN, 0});
  ::poll(wait.data(), wait.size(), kListen_ms);
  keep_words();
  if (door_)
    for (const Door::Guest& guest : door_->admit(monotonic_seconds()))
      hosts_.push_back({guest.host, MessageLine(guest.socket), {}, 0, true});
  for (Host& host : hosts_) hear(host);
}

// Copies the output of ranks to stderr (mostly rank 0's, as the others have log files). Appends mpirun's own messages to
// log-mpirun.txt.
void Attempt::keep_words() {
  char buffer[16384];
  const size_t own_before = says_.own().size();
  ssize_t got = 0;
  while (words_fd_ >= 0 && (got = ::read(words_fd_, buffer, sizeof buffer)) > 0) {
    const std::string said = says_.take({buffer, static_cast<size_t>(got)});
    std::fwrite(said.data(), 1, said.size(), stderr);
  }
  if (words_fd_ >= 0 && got == 0) {
    const std::string said = says_.rest();
    std::fwrite(said.data(), 1, said.size(), stderr);
    ::close(std::exchange(words_fd_, -1));
  }
  if (says_.own().size() > own_before)
    std::ofstream(settings_.run_dir / "log-mpirun.txt", std::ios::app) << says_.own().substr(own_before);
}

void Attempt::hear(Host& host) {
  for (const nlohmann::json& message : host.line.receive()) {
    host.silent_s = 0;
    if (!message.contains("ranks")) continue;
    host.ranks.clear();
    for (const nlohmann::json& rank : message["ranks"]) host.ranks.push_back(rank_view(rank));
  }
}

std::vector<RankView> Attempt::ranks() const {
  std::vector<RankView> all;
  for (const Host& host : hosts_) all.insert(all.end(), host.ranks.begin(), host.ranks.end());
  std::sort(all.begin(), all.end(), [](const RankView& a, const RankView& b) { return a.rank < b.rank; });
  return all;
}

void Attempt::pass_signals_on() {
  const int count = requests_.count();
  if (count == passed_on_) return;
  if (passed_on_ == 0) {
    log::info("interrupted by {}: stopping after this step; saving a checkpoint. Press Ctrl-C again to stop now.",
              signal_name(requests_.first()));
    for (Host& host : hosts_) host.line.send({{"signal", SIGTERM}});
    // Not all ranks have started, so they cannot save.
    if (const auto all = ranks(); static_cast<int>(all.size()) < settings_.ranks) end(kPatience_s);
  }
  if (count > 1) end(0);
  passed_on_ = count;
}

void Attempt::judge(double passed_s) {
  if (status_) return;
  const std::vector<RankView> all = ranks();
  bool trouble = false;
  for (const RankView& rank : all) {
    if (rank.crashed() && !first_dead_) first_dead_ = rank;
    trouble |= rank.crashed() || rank.state == RankState::failed;
  }
  if (trouble) trouble_s_ = std::max(trouble_s_, 0.0) + passed_s;
  if (trouble_s_ > kTrouble_s) return end(kPatience_s);

  for (Host& host : hosts_) {
    host.silent_s += passed_s;
    if (host.away) host.line.send(nlohmann::json::object());
    const bool over = std::all_of(host.ranks.begin(), host.ranks.end(), [](const RankView& r) { return r.ended(); });
    if (host.line.open() && host.silent_s < kHostSilence_s) continue;
    if (host.away && over && !host.ranks.empty()) continue;  // all its ranks have ended: an orderly end
    lost_host_ = host.name;
    log::error("host {} has not answered for {:.0f} s: it is down, or its network connection is cut\n{}", host.name,
               kHostSilence_s, rank_table(all));
    return end(0);
  }
  if (passed_on_ > 0) return;
  if (auto overdue = watchdog_.look(all, passed_s)) {
    hung_ = find_culprit(all).reason;
    log::error("{}\n{}{}", *overdue, rank_table(all), hung_);
    for (Host& host : hosts_) host.line.send({{"signal", SIGKILL}});  // mpirun would first continue ranks that are stopped
    end(kPatience_s);
  }
}

void Attempt::end(double patience_s) {
  if (mpirun_ <= 0 || status_) return;
  if (patience_s > 0) ::kill(mpirun_, SIGTERM);
  const double until = monotonic_seconds() + patience_s;
  int status = 0;
  while (::waitpid(mpirun_, &status, WNOHANG) != mpirun_) {
    if (monotonic_seconds() > until) ::kill(mpirun_, SIGKILL);
    ::usleep(10000);
  }
  status_ = status;
}

bool Attempt::settled() const {
  if (!status_) return false;
  if (since_end_s_ > kSettle_s) return true;
  for (const Host& host : hosts_)
    for (const RankView& rank : host.ranks)
      if (rank.life != Life::dead && host.line.open()) return false;
  return words_fd_ < 0 && since_end_s_ > 0.1;
}

std::string Attempt::describe_crash() const {
  const auto death = says_.death();
  std::optional<RankView> dead = first_dead_;
  if (death) {
    for (const RankView& rank : ranks())
      if (rank.rank == death->rank) dead = rank;
    const std::string why = death->signal == SIGKILL ? "; out of memory is the usual cause" : "";
    return fmt::format("rank {} on {} was killed by {}{}{}", death->rank, death->host, describe_signal(death->signal),
                       dead && dead->rank == death->rank ? " " + what_it_did(*dead) : "", why);
  }
  if (WIFSIGNALED(*status_)) return fmt::format("mpirun {}", describe_wait_status(*status_));
  const std::string words = says_.first_words();
  return fmt::format("rank {} on {} ended without an error message, {}{}", dead->rank, dead->host, what_it_did(*dead),
                     words.empty() ? "" : "; mpirun says: " + words);
}

Outcome Attempt::outcome() {
  using Kind = Outcome::Kind;
  const std::vector<RankView> all = ranks();
  if (!lost_host_.empty()) {
    Outcome lost{Kind::crashed, ExitCode::fault, "host " + lost_host_ + " no longer answers", {}};
    for (const Host& host : hosts_)
      if (!host.ranks.empty() && host.name != lost_host_)
        lost.hosts_left.push_back({host.name, static_cast<int>(host.ranks.size())});
    return lost;
  }
  if (!hung_.empty()) return {Kind::hung, ExitCode::fault, hung_, {}};

  // Report the user's mistakes first, then our bugs, then faults: a fault may be a consequence of the others.
  std::map<std::string, std::vector<int>> saying;
  const RankView* worst = nullptr;
  auto weight = [](const RankView& r) { return r.code == 2 ? 0 : r.code == 1 ? 1 : 2; };
  for (const RankView& rank : all) {
    if (rank.state != RankState::failed) continue;
    saying[rank.message].push_back(rank.rank);
    if (!worst || weight(rank) < weight(*worst) || (weight(rank) == weight(*worst) && rank.ended_ago_s > worst->ended_ago_s))
      worst = &rank;
  }
  if (passed_on_ > 1)
    return {Kind::stopped, ExitCode::interrupted, "stopped at the second signal, without saving a checkpoint", {}};
  if (worst && !says_.death()) {
    const std::vector<int>& who = saying[worst->message];
    const bool everybody = static_cast<int>(who.size()) == settings_.ranks;
    return {Kind::failed, static_cast<ExitCode>(worst->code),
            everybody ? worst->message : list_ranks(who) + ": " + worst->message, {}};
  }
  const bool left = static_cast<int>(all.size()) == settings_.ranks &&
                    std::all_of(all.begin(), all.end(), [](const RankView& r) { return r.state == RankState::finished; });
  if (left) return {Kind::ended, static_cast<ExitCode>(all.front().code), "", {}};
  bool began = false;
  for (const RankView& rank : all) {
    if (rank.crashed() && !first_dead_) first_dead_ = rank;
    began |= rank.state != RankState::starting;
  }
  for (const RankView& rank : all)
    if (rank.state == RankState::finished && rank.code != 0 && rank.code != static_cast<int>(ExitCode::interrupted))
      return {Kind::failed,
              static_cast<ExitCode>(rank.code),
              fmt::format("rank {} stopped; {} has the reason", rank.rank,
                          rank.rank > 0 ? fmt::format("log-{}.txt in the run directory", rank.rank) : "its output"),
              {}};
  if (passed_on_ > 0) {
    if (!began) return {Kind::stopped, ExitCode::interrupted, "stopped while starting; there was nothing to save", {}};
    if (first_dead_) return {Kind::failed, ExitCode::fault, "while stopping, " + describe_crash(), {}};
    // The signal came while some ranks had not started. The others may have ended the run anyway.
    for (const RankView& rank : all)
      if (rank.state == RankState::finished) return {Kind::ended, static_cast<ExitCode>(rank.code), "", {}};
    return {Kind::stopped, ExitCode::interrupted, "stopped while the ranks were starting", {}};
  }
  if (first_dead_ || says_.death() || WIFSIGNALED(*status_)) return {Kind::crashed, ExitCode::fault, describe_crash(), {}};
  return {Kind::not_started, ExitCode::user,
          fmt::format("mpirun {}: {}", describe_wait_status(*status_), says_.first_words()), {}};
}

}  // namespace megalith::launch
