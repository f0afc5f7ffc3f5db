// How a run is divided among ranks, seen from one of them, and between the host and a device.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/op.h"

namespace megalith {

// How the state of a block is divided among the ranks that hold it and work on other sequences with it.
struct Sharding {
  int32_t replicas = 1;  // that many ranks
  int32_t zero = 0;      // sliced over them: 1 optimizer state, 2 gradients too, 3 parameters too
  int32_t expert = 1;    // experts are spread over so many of them: as many times fewer have the same ones
  int32_t expert_replicas() const { return replicas / expert; }
  bool slices() const { return replicas > 1 && zero > 0; }
};

// Which blocks are on which stage of the pipeline, and which stage this rank is.
struct Stages {
  std::vector<int32_t> of;  // by block; empty: there is one stage
  int32_t here = 0;
};

// How a run is divided, among ranks, seen from one of them, and between the host and a device.
struct Division {
  int32_t ranks = 1;   // of the whole run
  int32_t tensor = 1;  // that share the inside of each block: of what is the same on all, each has a share of the gradient
  Sharding sharding;
  Stages stages;
  // Blocks are computed on a device: parameters, gradients and activations are there while they are used; the state is at
  // home in the host's memory or on its disk, where norms and updates are made.
  bool device = false;

  int32_t stage(BlockId block) const { return stages.of.empty() ? 0 : stages.of[static_cast<size_t>(block)]; }
  // Gradients are summed over ranks.
  bool reduces() const { return sharding.replicas > 1 || tensor > 1; }
};

}  // namespace megalith
