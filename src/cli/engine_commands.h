// The commands that compute with a model. This folder knows their options. The engine program, which links LibTorch and MPI,
// runs them. The program `megalith` starts the engine program for them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

struct TrainArguments {
  std::string path;
  std::vector<std::string> overrides;
  int ranks = 0;
  std::string hosts, interface;
  bool dry_run = false;
};

struct OutlookArguments {  // memory, simulate
  std::string path;
  std::vector<std::string> overrides;
  int ranks = 0;
  std::string svg, trace;  // files to write; empty: none
};

struct AnalyzeArguments {
  std::string path;
  std::vector<std::string> overrides;
  std::vector<std::string> metrics;
  std::string checkpoint, deepspeed;
  int64_t examples = 5;
};

struct GenerateArguments {
  std::string path, prompts_file;
  std::vector<std::string> prompts, stop;
  bool interactive = false;
  int64_t tokens = 100, top_k = 0;
  double temperature = 1, top_p = 1, repetition_penalty = 1;
  uint64_t seed = 1;
};

struct EvalArguments {
  std::string path, choices, joint = " ", pairs, retrieval;
  std::vector<std::string> files;
  int64_t window = 0, stride = 0;
};

struct EmbedArguments {
  std::string path, out, field = "text";
  std::vector<std::string> files;
};

struct DoctorArguments {
  std::string spill;
};

struct EngineCommands {
  void (*start)();  // called before any command
  CommandResult (*train)(const CommandContext&, const TrainArguments&);
  CommandResult (*memory)(const CommandContext&, const OutlookArguments&);
  CommandResult (*simulate)(const CommandContext&, const OutlookArguments&);
  CommandResult (*analyze)(const CommandContext&, const AnalyzeArguments&);
  CommandResult (*generate)(const CommandContext&, const GenerateArguments&);
  CommandResult (*eval)(const CommandContext&, const EvalArguments&);
  CommandResult (*embed)(const CommandContext&, const EmbedArguments&);
  CommandResult (*doctor)(const CommandContext&, const DoctorArguments&);
};

// The commands with their options. `engine` null: another program runs them.
Command train_command(const EngineCommands* engine);
Command memory_command(const EngineCommands* engine);
Command simulate_command(const EngineCommands* engine);
Command analyze_command(const EngineCommands* engine);
Command generate_command(const EngineCommands* engine);
Command eval_command(const EngineCommands* engine);
Command embed_command(const EngineCommands* engine);
Command doctor_command(const EngineCommands* engine);

}  // namespace megalith
