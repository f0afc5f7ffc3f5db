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

constexpr const char* kOutlookRanks = "as if started with so many on this host; else as many as parallel asks for";

}  // namespace

Command train_command(const EngineCommands* engine) {
  auto a = std::make_shared<TrainArguments>();
  return run_by(engine, &EngineCommands::train, a,
                {"train", "train a model; run again: resume",
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--ranks", &a->ranks, "start so many processes, watch them, start them again after a crash", {.least = 1}},
                  {"--hosts", &a->hosts, "where: names with numbers of ranks, a:2,b:2, each reached by ssh; else this host",
                   {.needs = "--ranks"}},
                  {"--interface", &a->interface, kInterfaceHelp, {.needs = "--ranks"}},
                  {"--dry-run", &a->dry_run, "check settings, files and memory, show the plan, and write nothing"}}});
}

Command memory_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::memory, a,
                {"memory", "what a run needs how much memory and disk for; nothing is trained",
                 {run_path(a->path), run_overrides(a->overrides), {"--ranks", &a->ranks, kOutlookRanks, {.least = 1}}}});
}

Command simulate_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::simulate, a,
                {"simulate", "one step's timeline, predicted; nothing is trained",
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--ranks", &a->ranks, kOutlookRanks, {.least = 1}},
                  {"--svg", &a->svg, "write the picture of lanes and memory to this file"},
                  {"--trace", &a->trace, "write the timeline to this file, for ui.perfetto.dev"}}});
}

Command analyze_command(const EngineCommands* engine) {
  auto a = std::make_shared<AnalyzeArguments>();
  return run_by(engine, &EngineCommands::analyze, a,
                {"analyze", "the difficulty of every training sample, for curricula",
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--metric", &a->metrics,
                   "length, rarity, length_rarity, compression, loss, or one that the curriculum has a file of; several with "
                   "commas; default: all that the curriculum filters by, else the first four",
                   {.one_value = true, .separator = ','}},  // the next argument may be key=value
                  {"--checkpoint", &a->checkpoint, "metric loss: the model whose loss it is; default: the curriculum's"},
                  {"--deepspeed", &a->deepspeed, "folder to write DeepSpeed's index files to, too"},
                  {"--examples", &a->examples, "easiest and hardest samples shown",
                   {.shows_default = true, .least = 0, .most = 1000}}}});
}

Command generate_command(const EngineCommands* engine) {
  auto a = std::make_shared<GenerateArguments>();
  return run_by(engine, &EngineCommands::generate, a,
                {"generate", "continue texts",
                 {{"CKPT", &a->path, kModelPath, {.required = true}},
                  {"--prompt", &a->prompts, "text to continue; several times: all at once; none: begin a document",
                   {.one_value = true}},
                  {"--prompts", &a->prompts_file, "file of prompts: one a line; .json and .jsonl: texts or objects with the field prompt"},
                  {"-i,--interactive", &a->interactive, "read lines and continue each until the end of input"},
                  {"--tokens", &a->tokens, "at most this many", {.shows_default = true, .least = 0}},
                  {"--temperature", &a->temperature, "0: always the likeliest", {.shows_default = true, .least = 0}},
                  {"--top-k", &a->top_k, "choose among the k likeliest; 0: all", {.shows_default = true, .least = 0}},
                  {"--top-p", &a->top_p, "choose among the likeliest of this total probability",
                   {.shows_default = true, .least = 0, .most = 1}},
                  {"--repetition-penalty", &a->repetition_penalty, "above 1: tokens that came before are less likely",
                   {.shows_default = true, .least = 0.01, .most = 100}},
                  {"--stop", &a->stop, "end before this text; several times: before any", {.one_value = true}},
                  {"--seed", &a->seed, "of the choices", {.shows_default = true}}}});
}

Command eval_command(const EngineCommands* engine) {
  auto a = std::make_shared<EvalArguments>();
  return run_by(engine, &EngineCommands::eval, a,
                {.name = "eval",
                 .about = "loss, perplexity and bits per byte of a text; answers to multiple choices",
                 .options = {{"CKPT", &a->path, kModelPath, {.required = true}},
                             {"--data", &a->files, "text: its documents one after the other, each with the end token"},
                             {"--window", &a->window, "tokens at once; default: the model's context", {.least = 0}},
                             {"--stride", &a->stride, "tokens from window to window; default: the window", {.least = 0}},
                             {"--choices", &a->choices, "JSON lines with context, choices and answer (an index)"},
                             {"--joint", &a->joint, "between context and choice where neither has white space",
                              {.shows_default = true}}},
                 .one_required = {"--data", "--choices"}});
}

Command doctor_command(const EngineCommands* engine) {
  auto a = std::make_shared<DoctorArguments>();
  return run_by(engine, &EngineCommands::doctor, a,
                {"doctor", "measure this machine",
                 {{"--spill", &a->spill, "also measure the disk under this folder, as memory.spill would use it"}}});
}

}  // namespace megalith
