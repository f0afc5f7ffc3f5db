// Several ranks: train --ranks and submit.
#include "cli/launch_commands.h"

#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/store.h"
#include "cli/checks.h"
#include "cli/run_file.h"
#include "launch/slurm.h"
#include "launch/supervisor.h"
#include "train/layout.h"

namespace megalith {
namespace {

void make_run_directory(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) throw UserError({"", "run.dir", "a directory that can be written", dir, error.message()});
}

int most_ranks(const Config& config, int available) {
  for (int ranks = available; ranks > 0; ranks--) {
    Config tried = config;
    try {
      resolve_layout(tried, ranks);
      return ranks;
    } catch (const UserError&) {  // not with so many
    }
  }
  return 0;
}

struct SubmitOptions {
  launch::SlurmJob job;
  bool dry_run = false;
};

CommandResult submit(const CommandContext& context, const std::string& path, const std::vector<std::string>& overrides,
                     SubmitOptions options) {
  const Config config = load_config(path, overrides);
  make_run_directory(config.run.dir);
  const std::filesystem::path run_dir = std::filesystem::absolute(config.run.dir);
  launch::SlurmJob& job = options.job;
  job.name = run_dir.filename().string();
  job.folder = std::filesystem::current_path();
  job.output = run_dir / "slurm-%j.txt";
  job.command = {launch::own_path(), "train", path};
  job.command.insert(job.command.end(), overrides.begin(), overrides.end());
  const std::string script = (run_dir / "submit.sh").string();
  write_file_atomically(script, launch::batch_script(job));
  if (options.dry_run) {
    print(context, script + "\n");
    return {ExitCode::done, {{"script", script}}};
  }
  const std::string number = launch::submit(script);
  print(context,
        fmt::format("job {}: {}\noutput  {}\n", number, script, (run_dir / fmt::format("slurm-{}.txt", number)).string()));
  return {ExitCode::done, {{"job", number}, {"script", script}}};
}

}  // namespace

CommandResult supervise_training(const Config& config, int ranks, const std::string& hosts,
                                 std::vector<std::string> command) {
  Config tried = config;
  resolve_layout(tried, ranks);  // what cannot be laid out is said before anything is started
  make_run_directory(config.run.dir);
  const std::filesystem::path run_dir = config.run.dir;
  log::to_file((run_dir / "log.txt").string());
  launch::Job job{std::move(command), ranks, launch::parse_hosts(hosts), config.run.restarts, config.run.watchdog, run_dir,
                  [=] {
                    auto found = latest_valid(run_dir / "checkpoints", [](const std::string&) {});
                    return found ? found->dir.string() : "";
                  },
                  [=](int available) { return most_ranks(config, available); }};
  launch::Ending ending = launch::supervise(std::move(job));
  return {ending.code, nullptr, ending.message};  // --json: rank 0 has printed the object
}

void add_submit(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("submit", "write a Slurm job for a run and hand it in");
  auto [path, overrides] = add_run_file(*command);
  auto options = std::make_shared<SubmitOptions>();
  launch::SlurmJob& job = options->job;
  command->add_option("--nodes", job.nodes, "nodes")->required()->check(number_between(1));
  command->add_option("--ranks-per-node", job.ranks_per_node, "ranks on each node")->required()->check(number_between(1));
  command->add_option("--time", job.time, "time limit, as sbatch takes it; the run saves two minutes before");
  command->add_option("--partition", job.partition, "partition");
  command->add_option("--account", job.account, "account");
  command->add_option("--sbatch", job.options,
                      "a further option of sbatch, as --sbatch=--constraint=avx512; may be repeated");
  command->add_flag("--dry-run", options->dry_run, "write the script only");
  command->callback([path = path, overrides = overrides, options, &context] {
    context.action = [path, overrides, options, &context] { return submit(context, *path, *overrides, *options); };
  });
}

}  // namespace megalith
