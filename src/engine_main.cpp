// The engine program: every command, with LibTorch and MPI. `megalith` starts it; see cli/engine_commands.h.
#include "cli/cli.h"
#include "commands/commands.h"
#include "memory/allocator.h"

int main(int argc, char** argv) {
  using namespace megalith;
  const EngineCommands commands{.start = install_allocator,
                                .train = run_train,
                                .memory = run_memory,
                                .simulate = run_simulate,
                                .analyze = run_analyze,
                                .generate = run_generate,
                                .eval = run_eval,
                                .embed = run_embed,
                                .doctor = run_doctor};
  return run_command_line(argc, argv, &commands);
}
