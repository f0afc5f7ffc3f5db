// Commands about a run directory, without training: report, checkpoint verify, submit.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/similar_file.h"
#include "base/units.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/store.h"
#include "checkpoint/verify.h"
#include "cli/light_commands.h"
#include "cli/run_file.h"
#include "launch/slurm.h"
#include "launch/supervisor.h"
#include "report/html.h"

namespace megalith {
namespace {

struct SubmitArguments {
  std::string path;
  std::vector<std::string> overrides;
  launch::SlurmJob job;
  std::string interface;
  bool dry_run = false;
};

CommandResult submit(const CommandContext& context, const Config& config, const SubmitArguments& a) {
  const std::filesystem::path run_dir = std::filesystem::absolute(config.run.dir);
  launch::SlurmJob job = a.job;
  job.name = run_dir.filename().string();
  job.folder = std::filesystem::current_path();
  job.output = run_dir / "slurm-%j.txt";
  job.command = {launch::own_path(), "train", a.path};
  job.command.insert(job.command.end(), a.overrides.begin(), a.overrides.end());
  if (!a.interface.empty()) job.command.insert(job.command.end(), {"--interface", a.interface});
  const std::string script = (run_dir / "submit.sh").string(), text = launch::batch_script(job);
  make_run_directory(config.run.dir);
  write_file_atomically(script, text);
  if (a.dry_run) {
    print(context, script + "\n");
    return {ExitCode::done, {{"script", script}}};
  }
  const std::string number = launch::submit(script);
  print(context,
        fmt::format("job {}: {}\noutput  {}\n", number, script, (run_dir / fmt::format("slurm-{}.txt", number)).string()));
  return {ExitCode::done, {{"job", number}, {"script", script}}};
}

// Throws UserError if the folder does not exist, or if `holds` finds nothing of a run in it.
void expect_run(const std::string& dir, const std::string& expected, bool (*holds)(const std::filesystem::path&)) {
  if (holds(dir)) return;
  std::error_code ignored;
  const bool exists = std::filesystem::exists(dir, ignored);
  const std::filesystem::path run = run_meant(dir);
  throw UserError({dir, "", expected, exists ? "a folder without one" : "no such folder",
                   !run.empty() ? fmt::format("did you mean {}?", run.string())
                   : exists     ? how_to_train(dir)
                                : where_it_may_be(dir)});
}

bool has_checkpoint(const std::filesystem::path& dir) {
  std::error_code ignored;
  const bool is_checkpoint = std::filesystem::exists(dir / "manifest.json", ignored) || step_of_name(dir.filename().string());
  return is_checkpoint || !list_checkpoints(dir / "checkpoints").empty() || !list_checkpoints(dir).empty();
}

CommandResult verify_checkpoint(const CommandContext& context, const std::string& dir) {
  expect_run(dir, "a checkpoint, or a run with one", has_checkpoint);
  std::filesystem::path checkpoint = dir;
  for (const auto& folder : {checkpoint / "checkpoints", checkpoint})
    if (const auto newest = newest_checkpoint(folder)) checkpoint = newest->dir;
  VerifyResult result = verify(checkpoint);
  nlohmann::json problems = nlohmann::json::array();
  for (const VerifyProblem& problem : result.problems) {
    print(context, show(problem) + "\n");
    problems.push_back({{"file", problem.file}, {"what", problem.what}});
  }
  if (result.ok())
    print(context,
          fmt::format("{}: all checksums match ({} files, {})\n", checkpoint.string(), result.files,
                      show(Bytes(result.bytes))));
  return {result.ok() ? ExitCode::done : ExitCode::fault, {{"ok", result.ok()}, {"problems", problems}}};
}

}  // namespace

void make_run_directory(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error && is_machine_fault(error.value())) throw_cannot("make", dir, error.value());
  if (error) throw UserError({"", "run.dir", "a directory that can be written", dir, error.message()});
}

Command report_command() {
  auto dir = std::make_shared<std::string>();
  return {"report", "Write report.html of a run again, from the files in its directory.",
          "Every run writes report.html when it ends. Use this command for a run that still trains or was killed.",
          {"megalith report runs/first", "megalith report runs/longer"},
          {{"RUN_DIR", dir.get(), "Run directory.", {.required = true}}},
          [dir](const CommandContext& context) {
            expect_run(*dir, "a run directory", is_run_folder);
            write_report(*dir);
            const std::string file = (std::filesystem::path(*dir) / "report.html").string();
            print(context, file + "\n");
            return CommandResult{ExitCode::done, {{"report", file}}};
          }};
}

Command submit_command() {
  auto a = std::make_shared<SubmitArguments>();
  return {"submit", "Write a Slurm job script for a run and submit it.",
          "Slurm is the program that starts jobs on many clusters. The job runs `megalith train` on nodes (machines) that "
          "Slurm chooses. The script and the output of the job are in the run directory. Only --dry-run works on a machine "
          "without Slurm.",
          {"megalith submit first.yaml --nodes 1 --ranks-per-node 2 --dry-run",
           "megalith submit first.yaml --nodes 2 --ranks-per-node 4 --time 8:00:00 --dry-run"},
          {run_path(a->path), run_overrides(a->overrides),
           {"--nodes N", &a->job.nodes, "Number of nodes of the job.", {.required = true, .least = 1}},
           {"--ranks-per-node N", &a->job.ranks_per_node, "Number of ranks (processes) on each node.",
            {.required = true, .least = 1}},
           {"--time TIME", &a->job.time,
            "Time after which Slurm stops the job, such as 30 (minutes), 8:00:00 (8 hours) or 2-12 (2 days and 12 hours). "
            "The run saves a checkpoint two minutes earlier. Default: the limit of the cluster."},
           {"--partition NAME", &a->job.partition,
            "Partition (group of nodes) in which the job runs. `sinfo` lists the partitions. Default: the default partition "
            "of the cluster."},
           {"--account NAME", &a->job.account,
            "Account to which the cluster charges the computing time. Default: your default account."},
           {"--sbatch OPTION", &a->job.options,
            "Another option for sbatch, Slurm's program that submits jobs. Example: --sbatch=--constraint=avx512. Can be "
            "repeated. Default: none.",
            {.one_value = true}},  // the next argument may be KEY=VALUE
           {"--interface NAME", &a->interface, kInterfaceHelp},
           {"--dry-run", &a->dry_run, "Write the script, but do not submit it."}},
          [a](const CommandContext& context) {
            return from_run_file(a->path, a->overrides, [&](const Config& config) { return submit(context, config, *a); });
          }};
}

Command checkpoint_command() {
  auto dir = std::make_shared<std::string>();
  Command verify{"verify", "Compare all files of a checkpoint with their checksums.",
                 "The command lists every difference. If there is one, it exits with code 4.",
                 {"megalith checkpoint verify runs/first",
                  "megalith checkpoint verify runs/first/checkpoints/step-00000100"},
                 {{"DIR", dir.get(), "Checkpoint, or run directory (its newest checkpoint is "
                                     "verified).", {.required = true}}},
                 [dir](const CommandContext& context) { return verify_checkpoint(context, *dir); }};
  return {"checkpoint", "Verify checkpoints.", "", verify.examples, {}, {}, {verify}};
}

}  // namespace megalith
