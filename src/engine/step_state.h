// The state of one step of one rank while it runs. The handlers of ops work on it.
#pragma once
#include <optional>
#include <vector>

#include "engine/device_copies.h"
#include "engine/residency.h"
#include "engine/state_pieces.h"
#include "engine/step_totals.h"
#include "engine/step_types.h"
#include "engine/process_groups.h"
#include "model/pass.h"
#include "model/tape.h"
#include "schedule/schedule.h"

namespace megalith {

// A micro-batch while it passes through the model. Vectors are by block.
struct MicroState {
  Pass pass;
  std::vector<at::Tensor> activations;  // output of the block, until the next one has consumed it
  std::vector<at::Tensor> inputs;       // inputs of blocks that are recomputed
  std::vector<at::Tensor> host_inputs;  // with a device: inputs that wait in host memory
  std::vector<at::Tensor> gradients;    // gradients of the outputs
  std::vector<Tape> tapes;
  at::Tensor representations;           // of its sequences; then their gradient
  LossSums sums;
  RoutingRecord routing;                // only for a model with experts
};

struct StepState {
  // Parts of the engine, borrowed:
  const TrainSettings& settings;
  uint64_t seed;
  BlockStates& model;
  Residency& residency;
  DeviceCopies& device;
  StatePieces& pieces;
  const Optimizer* optimizer;  // null: parameters only
  ProcessGroups* groups;       // null: this rank is alone
  StepCounters& counters;
  // This step:
  const Schedule& schedule;
  StepInput input;
  Batch batch;                  // the sequences of this rank
  std::vector<MicroState> micros = {};
  std::vector<double> squares;  // sums of squares of the gradients, by block
  std::optional<StepTotals> totals = {};
  Update update = {};
  LoadScope load_scope = LoadScope::likely_experts;
  StepOutcome outcome = {};

  MicroState& micro(const Op& op) { return micros[static_cast<size_t>(op.micro)]; }
};

// Returns an uninitialised activation of a micro-batch, in the memory where blocks compute.
at::Tensor new_activation(const BlockStates& model, const Pass& pass);

}  // namespace megalith
