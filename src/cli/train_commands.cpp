#include <memory>
#include <nlohmann/json.hpp>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/launch_commands.h"
#include "cli/run_file.h"
#include "report/html.h"
#include "train/train.h"

namespace megalith {
namespace {

// Two or three lines for people; a run that failed has said why already.
std::string how_it_ended(const nlohmann::json& summary) {
  const std::string state = summary.value("state", ""), checkpoint = summary.value("checkpoint", "");
  const int64_t steps = summary.value("steps", int64_t{0});
  if (state == "interrupted")
    return fmt::format("interrupted after step {}; {}\n", steps,
                       checkpoint.empty() ? "nothing was saved, as checkpoint.every is never: the same command begins anew"
                                          : "the same command goes on from " + checkpoint);
  if (state != "finished") return "";
  std::string text = fmt::format("done: {} steps", steps);
  if (summary.contains("loss") && summary["loss"].is_number())
    text += fmt::format(", loss {:.4f}", summary["loss"].get<double>());
  if (summary.contains("valid_loss")) text += fmt::format(", validation loss {:.4f}", summary["valid_loss"].get<double>());
  if (!checkpoint.empty()) text += "\ncheckpoint  " + checkpoint;
  if (summary.contains("report")) text += "\nreport      " + summary["report"].get<std::string>();
  return text + "\n";
}

}  // namespace

void add_train(CLI::App& app, CommandContext& context) {
  {
    CLI::App* command = app.add_subcommand("train", "train a model; run again: resume");
    auto [path, overrides] = add_run_file(*command);
    auto ranks = std::make_shared<int>(0);
    auto hosts = std::make_shared<std::string>();
    command->add_option("--ranks", *ranks, "start so many processes, watch them, start them again after a crash")
        ->check(number_between(1));
    command
        ->add_option("--hosts", *hosts, "where: names with numbers of ranks, a:2,b:2, each reached by ssh; else this host")
        ->needs("--ranks");
    command->callback([path = path, overrides = overrides, ranks, hosts, &context] {
      context.action = [path, overrides, ranks, hosts, &context] {
        const launch::Environment& started = context.rank->environment();
        if (started.role == launch::Role::joined && *ranks > 0)
          throw UserError({"command line", "--ranks",
                           fmt::format("nothing: mpirun or srun has started {} ranks", started.size),
                           fmt::format("{}", *ranks), "leave it out"});
        if (started.role == launch::Role::alone && (*ranks > 1 || !hosts->empty()))
          return from_run_file(*path, *overrides, [&](const Config& config) {
            return supervise_training(config, *ranks, *hosts, context.command);
          });
        std::unique_ptr<World> world;
        TrainResult result = from_run_file(*path, *overrides, [&](Config config) {
          context.rank->begin(config.run);
          if (started.several()) world = World::join();
          return train(std::move(config), world.get(), context.rank->page());
        });
        if (world && (result.code == ExitCode::done || result.code == ExitCode::interrupted)) world->leave();
        const nlohmann::json& s = result.summary;
        if (!world || world->rank() == 0) print(context, how_it_ended(s));
        return CommandResult{result.code, s, result.failure};
      };
    });
  }
  {
    CLI::App* command = app.add_subcommand("report", "write a run's report.html again");
    auto dir = std::make_shared<std::string>();
    command->add_option("RUN_DIR", *dir, "a run directory")->required();
    command->callback([=, &context] {
      context.action = [=, &context] {
        write_report(*dir);
        std::string file = (std::filesystem::path(*dir) / "report.html").string();
        print(context, file + "\n");
        return CommandResult{ExitCode::done, {{"report", file}}};
      };
    });
  }
}

}  // namespace megalith
