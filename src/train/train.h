// A run, from its config to its report.
#pragma once
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/config.h"

namespace megalith {

struct TrainResult {
  ExitCode code = ExitCode::done;
  nlohmann::json summary;  // as in summary.json
};

// Trains, or goes on where the run directory's newest valid checkpoint left off. Throws UserError for what the
// user must change; faults end with a code that says whether there is a checkpoint to go on from.
TrainResult train(Config config);

}  // namespace megalith
