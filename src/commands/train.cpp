#include <memory>
#include <nlohmann/json.hpp>

#include "cli/run_file.h"
#include "comm/world.h"
#include "commands/commands.h"
#include "commands/dry_run.h"
#include "commands/supervise.h"
#include "memory/machine.h"
#include "train/train.h"

namespace megalith {
namespace {

// Returns one to three lines for people. Returns nothing for a run that failed: it has already printed why.
std::string how_it_ended(const nlohmann::json& summary) {
  const std::string state = summary.value("state", ""), checkpoint = summary.value("checkpoint", "");
  const int64_t steps = summary.value("steps", int64_t{0});
  if (state == "interrupted")
    return fmt::format("interrupted after step {}; {}\n", steps,
                       checkpoint.empty()
                           ? "nothing was saved (checkpoint.every: never); run the same command again to start from step 0"
                           : "run the same command again to resume from " + checkpoint);
  if (state != "finished") return "";
  std::string text = fmt::format("done: {} steps", steps);
  if (summary.contains("loss") && summary["loss"].is_number())
    text += fmt::format(", loss {:.4f}", summary["loss"].get<double>());
  if (summary.contains("valid_loss")) text += fmt::format(", validation loss {:.4f}", summary["valid_loss"].get<double>());
  if (summary.contains("valid_bits_per_byte"))
    text += fmt::format(", {:.3f} bits per byte", summary["valid_bits_per_byte"].get<double>());
  if (!checkpoint.empty()) text += "\ncheckpoint  " + checkpoint;
  if (summary.contains("report")) text += "\nreport      " + summary["report"].get<std::string>();
  return text + "\n";
}

}  // namespace

CommandResult run_train(const CommandContext& context, const TrainArguments& a) {
  const launch::Environment& started = context.rank->environment();
  if (a.dry_run) return dry_run(context, a);
  if (started.role == launch::Role::joined && a.ranks > 0)
    throw UserError({"command line", "--ranks",
                     fmt::format("no --ranks: mpirun or srun has already started {} ranks", started.size),
                     fmt::format("{}", a.ranks), "remove it"});
  if (started.role == launch::Role::alone && (a.ranks > 1 || !a.hosts.empty()))
    return from_run_file(a.path, a.overrides, [&](const Config& config) {
      return supervise_training(config, {a.ranks, a.hosts, a.interface}, context.command);
    });
  std::unique_ptr<World> world;
  TrainResult result = from_run_file(a.path, a.overrides, [&](const Config& config) {
    context.rank->begin(config.run);
    const Bytes alone = resident_memory();
    if (started.several()) world = World::join();
    return train(config, {world.get(), world ? resident_memory() - alone : Bytes(0)}, context.rank->page());
  });
  if (world && (result.code == ExitCode::done || result.code == ExitCode::interrupted)) world->leave();
  const nlohmann::json& s = result.summary;
  if (!world || world->rank() == 0) print(context, how_it_ended(s));
  return {result.code, s, result.failure};
}

}  // namespace megalith
