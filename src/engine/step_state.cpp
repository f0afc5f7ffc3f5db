#include "engine/step_state.h"

#include "memory/allocator.h"
#include "model/tensor_ops.h"

namespace megalith {

at::Tensor new_activation(const BlockStates& model, const Pass& pass) {
  MemoryScope scope(AllocationKind::activations);
  TierScope place(model.layout().device ? Tier::device : Tier::host);
  return tensor::empty({pass.rows(), model.shape().hidden}, at::TensorOptions().dtype(model.format().compute_type));
}

std::vector<double> routing_numbers(const StepState& step) {
  std::vector<double> sums;
  for (const MicroState& micro : step.micros) {
    const std::vector<double> own = numbers_of(micro.routing, step.model.shape().experts.count);
    sums.resize(own.size(), 0);
    for (size_t i = 0; i < own.size(); i++) sums[i] += own[i];
  }
  return sums;
}

}  // namespace megalith
