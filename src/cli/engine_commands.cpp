#include "cli/engine_commands.h"

#include <memory>
#include <utility>

#include "cli/run_file.h"

namespace megalith {
namespace {

// Completes a command. The engine program runs it; another program only parses its options.
template <class Arguments>
Command run_by(const EngineCommands* engine,
               CommandResult (*EngineCommands::*action)(const CommandContext&, const Arguments&),
               std::shared_ptr<Arguments> arguments, Command command) {
  if (engine)
    command.run = [action = engine->*action, arguments](const CommandContext& context) {
      return action(context, *arguments);
    };
  command.arguments = std::move(arguments);
  return command;
}

constexpr const char* kOutlookRanks = "predict for N ranks on this host; default: the ranks that `parallel` needs";

}  // namespace

Command train_command(const EngineCommands* engine) {
  auto a = std::make_shared<TrainArguments>();
  return run_by(engine, &EngineCommands::train, a,
                {"train", "train a model, or resume it if the run directory has a checkpoint",
                 {"megalith train first.yaml", "megalith train first.yaml run.dir=runs/two --ranks 2 train.steps=20"},
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--ranks", &a->ranks, "start N processes, watch them and restart them after a crash", {.least = 1}},
                  {"--hosts", &a->hosts,
                   "hosts with their numbers of ranks, such as a:2,b:2 (reached by ssh); default: this host",
                   {.needs = "--ranks"}},
                  {"--interface", &a->interface, kInterfaceHelp, {.needs = "--ranks"}},
                  {"--dry-run", &a->dry_run, "check settings, files and memory, and show the plan; nothing is written"}}});
}

Command memory_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::memory, a,
                {"memory", "show how much memory and disk a run needs, without training",
                 {"megalith memory first.yaml", "megalith memory large.yaml memory.ram=300MiB memory.spill=spill"},
                 {run_path(a->path), run_overrides(a->overrides), {"--ranks", &a->ranks, kOutlookRanks, {.least = 1}}}});
}

Command simulate_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::simulate, a,
                {"simulate", "predict the timeline of one step, without training",
                 {"megalith simulate first.yaml --svg step.svg",
                  "megalith simulate first.yaml --ranks 2 parallel.pipeline=2"},
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--ranks", &a->ranks, kOutlookRanks, {.least = 1}},
                  {"--svg", &a->svg, "file for a picture of lanes and memory"},
                  {"--trace", &a->trace, "file for the timeline, in the format of ui.perfetto.dev"}}});
}

Command analyze_command(const EngineCommands* engine) {
  auto a = std::make_shared<AnalyzeArguments>();
  return run_by(engine, &EngineCommands::analyze, a,
                {"analyze", "compute the difficulty of every training sample (used by curricula)",
                 {"megalith analyze first.yaml", "megalith analyze first.yaml --metric length,rarity --examples 3"},
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--metric", &a->metrics,
                   "length, rarity, length_rarity, compression, loss, or a metric that the curriculum reads from a file; "
                   "separate several by commas; default: those that the curriculum filters by, else the first four",
                   {.one_value = true, .separator = ','}},  // the next argument may be key=value
                  {"--checkpoint", &a->checkpoint,
                   "for metric loss: the model that computes the loss; default: the curriculum's"},
                  {"--deepspeed", &a->deepspeed, "also write DeepSpeed's index files to this folder"},
                  {"--examples", &a->examples, "number of easiest and of hardest samples to show",
                   {.shows_default = true, .least = 0, .most = 1000}}}});
}

Command generate_command(const EngineCommands* engine) {
  auto a = std::make_shared<GenerateArguments>();
  return run_by(engine, &EngineCommands::generate, a,
                {"generate", "generate text that continues a prompt",
                 {"megalith generate runs/first --prompt \"You may\" --tokens 40 --temperature 0.7",
                  "megalith generate runs/first --interactive"},
                 {{"CKPT", &a->path, kModelPath, {.required = true}},
                  {"--prompt", &a->prompts, "text to continue; repeat it for a batch; default: begin a new document",
                   {.one_value = true}},
                  {"--prompts", &a->prompts_file,
                   "file of prompts, one per line; .json and .jsonl: texts, or objects with the field prompt"},
                  {"-i,--interactive", &a->interactive, "read lines from standard input and continue each"},
                  {"--tokens", &a->tokens, "most tokens to generate", {.shows_default = true, .least = 0}},
                  {"--temperature", &a->temperature, "0: always the most likely token", {.shows_default = true, .least = 0}},
                  {"--top-k", &a->top_k, "sample from the k most likely tokens; 0: from all",
                   {.shows_default = true, .least = 0}},
                  {"--top-p", &a->top_p, "sample from the most likely tokens that have this total probability",
                   {.shows_default = true, .least = 0, .most = 1}},
                  {"--repetition-penalty", &a->repetition_penalty, "above 1: make tokens less likely that already occurred",
                   {.shows_default = true, .least = 0.01, .most = 100}},
                  {"--stop", &a->stop, "stop before this text; repeat it for several texts", {.one_value = true}},
                  {"--seed", &a->seed, "seed of the sampling", {.shows_default = true}}}});
}

Command eval_command(const EngineCommands* engine) {
  auto a = std::make_shared<EvalArguments>();
  return run_by(engine, &EngineCommands::eval, a,
                {.name = "eval",
                 .about = "measure loss, perplexity and bits per byte of a text, or the accuracy of multiple choice",
                 .examples = {"megalith eval runs/first --data my.txt", "megalith eval runs/small --choices choices.jsonl"},
                 .options = {{"CKPT", &a->path, kModelPath, {.required = true}},
                             {"--data", &a->files, "text files; each document ends with the end token"},
                             {"--window", &a->window, "tokens per window; default: the model's context", {.least = 1}},
                             {"--stride", &a->stride, "tokens between the starts of windows; default: the window",
                              {.least = 1}},
                             {"--choices", &a->choices, "JSON lines with context, choices and answer (an index)"},
                             {"--joint", &a->joint, "text between context and choice, unless there is white space already",
                              {.shows_default = true}}},
                 .one_required = {"--data", "--choices"}});
}

Command doctor_command(const EngineCommands* engine) {
  auto a = std::make_shared<DoctorArguments>();
  return run_by(engine, &EngineCommands::doctor, a,
                {"doctor", "measure the speed of this machine",
                 {"megalith doctor", "megalith doctor --spill spill"},
                 {{"--spill", &a->spill, "also measure the disk of this folder, as memory.spill uses it"}}});
}

}  // namespace megalith
