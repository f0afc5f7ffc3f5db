// What calibration runs of a model: one layer and the head. A large model's are represented by smaller ones, which take a
// second instead of minutes.
#pragma once
#include <string>

#include "planner/calibration.h"
#include "schedule/block_facts.h"

namespace megalith {

// A block of a run, and the smaller workload whose same block is measured in its place.
struct MeasuredBlock {
  Workload sample;       // the run's own where that is small
  BlockFacts of_sample;  // of the block that is run
  BlockFacts whole;      // of the run's block
  double flop() const { return whole.forward.flop + whole.backward.flop; }
};
MeasuredBlock measured_layer(const Workload& work);
MeasuredBlock measured_head(const Workload& work);

// Everything that the time of a sample depends on.
std::string describe(const Workload& work);

// Seconds of forward and backward, with cold caches as in a real step.
double layer_seconds(const Workload& sample);
double head_seconds(const Workload& sample);

}  // namespace megalith
