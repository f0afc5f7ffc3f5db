#include "engine/step_state.h"

#include "memory/allocator.h"
#include "model/tensor_ops.h"

namespace megalith {

at::Tensor new_activation(const BlockStates& model, const Pass& pass) {
  MemoryScope scope(AllocationKind::activations);
  TierScope place(model.layout().device ? Tier::device : Tier::host);
  return tensor::empty({pass.rows(), model.shape().hidden}, at::TensorOptions().dtype(model.format().compute_type));
}

}  // namespace megalith
