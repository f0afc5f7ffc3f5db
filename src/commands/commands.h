// The commands of the engine program, with LibTorch and MPI.
#pragma once
#include "cli/engine_commands.h"

namespace megalith {

CommandResult run_train(const CommandContext& context, const TrainArguments& arguments);
CommandResult run_memory(const CommandContext& context, const OutlookArguments& arguments);
CommandResult run_simulate(const CommandContext& context, const OutlookArguments& arguments);
CommandResult run_analyze(const CommandContext& context, const AnalyzeArguments& arguments);
CommandResult run_generate(const CommandContext& context, const GenerateArguments& arguments);
CommandResult run_eval(const CommandContext& context, const EvalArguments& arguments);
CommandResult run_embed(const CommandContext& context, const EmbedArguments& arguments);
CommandResult run_doctor(const CommandContext& context, const DoctorArguments& arguments);

}  // namespace megalith
