// A run as values: everything that follows from its settings and from the files that exist when it begins.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/head_tensors.h"
#include "checkpoint/store.h"
#include "config/config.h"
#include "data/step_shapes.h"
#include "layout/mesh.h"
#include "planner/plan_input.h"
#include "run/tokenizer_source.h"

namespace megalith {

struct Plan;

// Made by prepare_run; nothing changes it afterwards.
struct Run {
  Config config;                   // as written; for a resumed run, merged with the settings that it began with
  ModelShape shape;                // complete, with the vocabulary
  Mesh mesh = Mesh();              // of the rank that asks
  int32_t host_ranks = 1;          // ranks that share the host's memory and cores
  int64_t threads = 1;             // of a rank
  std::optional<Found> resume;     // the checkpoint to resume from; empty: the run begins
  std::filesystem::path weights;   // the folder to load weights from: of `resume`, or model.from. Empty: fresh weights
  HeadUse head = HeadUse::required;  // of `weights`
  StepShapes shapes;               // of its steps
  int64_t steps = 0;               // until it is done
  std::vector<std::string> notes;  // where settings came from, one line each
};

struct RunContext {
  Mesh mesh = Mesh();
  int32_t host_ranks = 1;
  std::optional<Found> resume;  // the run's newest checkpoint
  TokenizerSource& tokenizer;
  std::function<void(const std::string&)> say = [](const std::string&) {};  // about checkpoints that are not used
};

// Checks the settings of a run of `ranks` ranks, as far as this needs neither data nor model. Returns the layout. `from`: as
// in resolve_layout. Throws UserError that lists all mistakes.
Layout check_run(const Config& config, int ranks, std::string_view from = "--ranks");

// Text is not tokenized. Takes no lock, sets no threads, and writes only the files of `context.tokenizer`.
Run prepare_run(const Config& config, const RunContext& context);

// Returns the input of this rank's plan.
PlanInput plan_input(const Run& run);

// Returns config.yaml: the settings, with automatic ones replaced by the decisions.
std::string resolved_yaml(const Run& run, const Plan& plan);

}  // namespace megalith
