// The sample of a model that calibration runs: one layer and the head. For a large model it runs smaller ones, which take a
// second instead of minutes.
#pragma once
#include <string>

#include "planner/calibration.h"
#include "schedule/block_facts.h"

namespace megalith {

// A block of a run, and the smaller workload that is measured instead.
struct MeasuredBlock {
  Workload sample;       // the workload of the run itself if that is small
  BlockFacts of_sample;  // the block of the sample
  BlockFacts whole;      // the block of the run
  double flop() const { return whole.forward.flop + whole.backward.flop; }
};
MeasuredBlock measured_layer(const Workload& work);
MeasuredBlock measured_head(const Workload& work);

// Returns everything that the time of a sample depends on, as text.
std::string describe(const Workload& work);

// Seconds of forward and backward, with cold caches as in a real step.
double layer_seconds(const Workload& sample);
double head_seconds(const Workload& sample);

}  // namespace megalith
