// A handler does the work of an op on tensors: one function per kind. Each family of ops has one file in engine/ops/.
#pragma once
#include <span>

#include "engine/step_state.h"

namespace megalith {

struct OpHandler {
  OpKind kind;
  void (*run)(StepState& step, const Op& op);  // called by the thread of the op's lane
};

std::span<const OpHandler> compute_handlers();
std::span<const OpHandler> residency_handlers();
std::span<const OpHandler> device_handlers();
std::span<const OpHandler> ranks_handlers();
std::span<const OpHandler> pipeline_handlers();
std::span<const OpHandler> save_handlers();

}  // namespace megalith
