// The commands that need neither LibTorch nor MPI: the program `megalith` runs them itself.
#pragma once
#include "cli/command.h"

namespace megalith {

Command report_command();
Command submit_command();
Command tokenize_command();
Command shards_command();
Command tokenizer_command();   // tokenizer train
Command import_command();
Command export_command();
Command checkpoint_command();  // checkpoint verify
Command config_command();      // config, config from-deepspeed
Command presets_command();

}  // namespace megalith
