#include "launch/supervisor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "launch/attempt.h"

namespace megalith::launch {
namespace {

constexpr const char* kFront = "megalith";
constexpr const char* kEngine = "megalith-engine";
constexpr const char* kBindGuard = "libmegalith-bind.so";

int slurm_nodes() {
  const char* nodes = std::getenv("SLURM_JOB_ID") ? std::getenv("SLURM_JOB_NUM_NODES") : nullptr;
  return nodes ? std::atoi(nodes) : 1;
}

int slots(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const HostSlots& host) { return sum + host.slots; });
}

// mpirun hangs while it starts if it may not open enough files. Measured: it needs 35 for 2 ranks and 58 for 8.
void require_descriptors(int ranks) {
  const rlim_t least = 36 + 4 * static_cast<rlim_t>(ranks);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= least) return;
  limit.rlim_cur = std::min(limit.rlim_max, least);
  if (limit.rlim_cur < least || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw UserError({"", "--ranks", fmt::format("a limit of at least {} open files for {} ranks", least, ranks),
                     fmt::format("{}", limit.rlim_max), "raise it with ulimit -n"});
}

// Returns the ending of a run that cannot continue.
Ending give_up(const Job& job, const std::string& message) {
  const std::string checkpoint = job.last_checkpoint();
  if (checkpoint.empty()) return {ExitCode::fault, message + "; there is no checkpoint to resume from"};
  return {ExitCode::fault_resumable, message + "; run the same command again to resume from " + checkpoint};
}

}  // namespace

Ending supervise(Job job) {
  remove_left_over_folders();
  require_descriptors(job.ranks);
  StopRequests requests;
  for (int64_t restarts = 0;; restarts++) {
    const bool several_hosts = job.hosts.size() > 1 || (job.hosts.empty() && slurm_nodes() > 1);
    Outcome outcome = Attempt({job.command, job.ranks, job.hosts, several_hosts, job.interface, job.watchdog, job.run_dir}, requests).run();
    switch (outcome.kind) {
      case Outcome::Kind::ended: return {outcome.code, ""};
      case Outcome::Kind::stopped: return {ExitCode::interrupted, outcome.message};
      case Outcome::Kind::not_started:
        throw UserError({"", "--ranks", "ranks that mpirun can start", outcome.message, "check --ranks and --hosts"});
      case Outcome::Kind::hung: return give_up(job, outcome.message);
      case Outcome::Kind::failed:
        if (outcome.code == ExitCode::fault || outcome.code == ExitCode::fault_resumable)
          return give_up(job, outcome.message);
        return {outcome.code, outcome.message};
      case Outcome::Kind::crashed: break;
    }
    if (restarts >= job.restarts)
      return give_up(job, fmt::format("{}; the limit of {} restarts is reached (run.restarts)", outcome.message, restarts));
    if (!outcome.hosts_left.empty()) {
      job.hosts = outcome.hosts_left;
      const int ranks = job.layout_for(slots(job.hosts));
      if (ranks == 0)
        return give_up(job, fmt::format("{}; the layout needs more than the {} ranks that are left", outcome.message,
                                        slots(job.hosts)));
      job.ranks = ranks;
    }
    const std::string checkpoint = job.last_checkpoint();
    log::warn("{}; restarting on {} ranks {} (restart {} of {})", outcome.message, job.ranks,
              checkpoint.empty() ? "from step 0, because there is no checkpoint yet" : "from " + checkpoint, restarts + 1,
              job.restarts);
  }
}

std::string own_path() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return program.filename() == kEngine ? program.parent_path() / kFront : program;
}

std::string engine_path() { return std::filesystem::path(own_path()).parent_path() / kEngine; }

std::string bind_guard_path() {
  const std::string path = std::filesystem::path(own_path()).parent_path() / kBindGuard;
  const char* expected = "the library that keeps OpenMPI from listening on all addresses";
  if (::access(path.c_str(), R_OK) != 0)
    throw UserError({"", path, expected, "no readable file", "build or install megalith again"});
  if (path.find_first_of(" :") != std::string::npos)
    throw UserError({"", path, "a path without spaces and colons (LD_PRELOAD uses them as separators)", path,
                     "move megalith to another folder"});
  return path;
}

std::vector<std::string> own_command(int argc, char** argv) {
  std::vector<std::string> command{own_path()};
  command.insert(command.end(), argv + 1, argv + argc);
  return command;
}

}  // namespace megalith::launch
