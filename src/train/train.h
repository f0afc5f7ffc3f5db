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
  nlohmann::json summary;  // the content of summary.json
  std::string failure;     // with several ranks: the error, if it is not printed yet
};

// The ranks of a run, all of which call `train`.
struct Joined {
  World* world = nullptr;      // borrowed; null: this process is alone
  Bytes transport = Bytes(0);  // memory that joining the ranks added to this process
};

// Trains, or resumes from the newest valid checkpoint of the run directory. Throws UserError for what the user must change.
// After a fault, the exit code says whether there is a checkpoint to resume from. Rank 0 writes all files of the run. It
// checks everything that needs no text before it trains a tokenizer. Keeps `page` up to date.
TrainResult train(const Config& config, const Joined& joined, launch::StatusPage& page);

}  // namespace megalith
