#include "launch/host_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "launch/process.h"
#include "launch/rank_table.h"
#include "launch/diagnosis.h"
#include "launch/watchdog.h"

namespace megalith::launch {
namespace {

constexpr int kProcessCheck_ms = 250;

void watch(const HostFolder& folder, int64_t seconds, const std::filesystem::path& log_file) {
  Watchdog watchdog(seconds);
  for (double before = monotonic_seconds();;) {
    ::usleep(kProcessCheck_ms * 1000);
    const std::vector<RankView> ranks = look_at_ranks(folder.path());
    if (std::all_of(ranks.begin(), ranks.end(), [](const RankView& rank) { return rank.life == Life::dead; })) break;
    const double now = monotonic_seconds();
    if (auto overdue = watchdog.look(ranks, now - before)) {
      const std::string text = fmt::format("megalith: {}\n{}{} (among the ranks of this host)\n", *overdue,
                                           rank_table(ranks), find_culprit(ranks).reason);
      std::ofstream(log_file, std::ios::app) << text;
      [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
      for (const RankView& rank : ranks)
        if (rank.life != Life::dead) ::kill(rank.pid, SIGKILL);
    }
    before = now;
  }
  folder.remove();
}

}  // namespace

void fork_host_watch(const HostFolder& folder, int64_t seconds, const std::filesystem::path& log_file) {
  fork_beside(/*detached=*/true, {folder.lock(), STDERR_FILENO}, [&] { watch(folder, seconds, log_file); });
}

std::string joined_run_name() {
  std::string run = "joined";
  for (const char* name : {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_JOBID"})
    if (const char* value = std::getenv(name)) run += fmt::format("-{}", value);
  std::replace_if(run.begin(), run.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '.');
  return run;
}

}  // namespace megalith::launch
