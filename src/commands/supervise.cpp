#include "commands/supervise.h"

#include <filesystem>

#include "base/log.h"
#include "checkpoint/store.h"
#include "cli/run_file.h"
#include "config/resolve_layout.h"
#include "launch/supervisor.h"

namespace megalith {
namespace {

int most_ranks(const Config& config, int available) {
  for (int ranks = available; ranks > 0; ranks--) {
    try {
      resolve_layout(config, ranks);
      return ranks;
    } catch (const UserError&) {  // no layout for this number of ranks
    }
  }
  return 0;
}

}  // namespace

CommandResult supervise_training(const Config& config, const StartedRanks& started, std::vector<std::string> command) {
  resolve_layout(config, started.ranks);  // refuses an impossible layout before anything is started
  make_run_directory(config.run.dir);
  const std::filesystem::path run_dir = config.run.dir;
  log::to_file((run_dir / "log.txt").string());
  launch::Job job{std::move(command), started.ranks, launch::parse_hosts(started.hosts), started.interface, config.run.restarts, config.run.watchdog, run_dir,
                  [=] {
                    auto found = latest_valid(run_dir / "checkpoints", [](const std::string&) {});
                    return found ? found->dir.string() : "";
                  },
                  [=](int available) { return most_ranks(config, available); }};
  launch::Ending ending = launch::supervise(std::move(job));
  return {ending.code, nullptr, ending.message};  // --json: rank 0 has printed the object
}

}  // namespace megalith
