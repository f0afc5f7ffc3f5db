// Does a whole run, from its config to its report.
#pragma once
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "comm/world.h"
#include "config/config.h"
#include "launch/status_page.h"

namespace megalith {

struct TrainResult {
  ExitCode code = ExitCode::done;
  nlohmann::json summary;  // as in summary.json
  std::string failure;     // with several ranks: what went wrong; not printed yet
};

// The ranks of a run, all of which call `train`.
struct Joined {
  World* world = nullptr;      // borrowed; null: this process is alone
  Bytes transport = Bytes(0);  // what joining took of this process's memory
};

// Trains, or goes on where the run directory's newest valid checkpoint left off. Throws UserError for what the
// user must change; faults end with a code that says whether there is a checkpoint to go on from. Rank 0 writes what the run
// leaves, and checks everything that needs no text before a tokenizer is trained. `page` is kept up to date.
TrainResult train(const Config& config, const Joined& joined, launch::StatusPage& page);

}  // namespace megalith
