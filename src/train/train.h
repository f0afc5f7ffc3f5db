// A run, from its config to its report.
#pragma once
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "comm/world.h"
#include "config/config.h"
#include "launch/status_page.h"

namespace megalith {

struct TrainResult {
  ExitCode code = ExitCode::done;
  nlohmann::json summary;  // as in summary.json
  std::string failure;     // of a rank among several, which has not said it itself
};

// Trains, or goes on where the run directory's newest valid checkpoint left off. Throws UserError for what the
// user must change; faults end with a code that says whether there is a checkpoint to go on from. `world`: the ranks of
// this run, all of which call this (borrowed; null: this process is alone). Rank 0 writes what the run leaves.
// `page` is kept up to date.
TrainResult train(const Config& config, World* world, launch::StatusPage& page);

}  // namespace megalith
