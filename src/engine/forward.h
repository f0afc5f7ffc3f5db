// Forward passes without a schedule: generation and evaluation.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "data/batch.h"
#include "engine/step_state.h"

namespace megalith {

// The parts of an engine that a forward pass needs, borrowed.
struct ForwardParts {
  BlockStates& model;
  Residency& residency;
  DeviceCopies& device;
  ProcessGroups* groups;  // null: this rank is alone
};

// Logits of the last position of every sequence, or of all positions. If `pass.cache` is set, the pass continues it.
at::Tensor forward_logits(const ForwardParts& parts, const Pass& pass, bool last_only);
// Loss of every position (0 if it has no target), row by row.
std::vector<float> forward_losses(const ForwardParts& parts, const Pass& pass);

// Vector of every sequence, one after the other.
std::vector<float> forward_representations(const ForwardParts& parts, const Pass& pass);

}  // namespace megalith
