// The facts about a run that the planner needs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/units.h"
#include "config/config.h"
#include "data/step_shapes.h"
#include "layout/layout.h"

namespace megalith {

struct PlanInput {
  ModelShape shape;                      // complete
  Layout layout;                         // of all ranks
  int32_t stage = 0;                     // pipeline stage that the plan is for
  int32_t host_ranks = 1;                // ranks that share the host's memory and cores
  int64_t batch = 1, sequence = 1;       // a full step: sequences over all ranks, tokens of each
  int64_t micro_batch = 0;               // sequences at once; 0: the planner chooses
  int64_t threads = 1;                   // threads per rank
  std::vector<StepShape> shapes;         // all step shapes of the run; the plan has memory for each
  std::vector<int64_t> dropping_layers;  // layers that may drop tokens; empty: no layer does
  ObjectiveSettings objective;
  Precision precision = Precision::fp32;
  Packing activations = Packing::fp32, optimizer_state = Packing::fp32;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double momentum = 0;                   // momentum of the optimizer: without it SGD has no state
  MemorySettings memory;
  Bytes process;                         // memory of the process itself (planner/process.h); all ranks plan with the largest
  std::filesystem::path disk;            // where checkpoints go
  bool resumed = false;                  // a refusal then suggests only settings that a resumed run may change

  int64_t rank_batch() const { return batch / layout.data; }  // sequences of a rank per step
  int32_t micros_of(int64_t sequences) const { return static_cast<int32_t>(rank_batch() / sequences); }  // per step
  // Returns the input of the same run as if all its steps had this shape.
  PlanInput for_shape(const StepShape& step) const;
};

// Makes the input from settings. `shape` and `layout` must be complete; `shapes` are those of the run's steps. Sets threads
// as in the settings, and one rank per host.
PlanInput plan_input(const Config& config, const ModelShape& shape, const Layout& layout, const StepShapes& shapes);

}  // namespace megalith
