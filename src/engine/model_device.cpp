// The part of ModelState that moves blocks between the host and the device that computes them.
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "engine/model_state.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"

namespace megalith {

void ModelState::upload(BlockId id) {
  State& state = state_of(id);
  MEGALITH_ASSERT(!state.computing.defined() && !is_pending(state), "{}", state.block->spec().name);
  MemoryScope scope(AllocationKind::parameters);
  const BlockSpec& spec = state.block->spec();
  const at::Tensor copy = device_->empty({computing_elements(spec, compute_type_)}, compute_type_);
  for (Part& part : state.parts) {
    write_computing(spec, copy, part.own.begin, part.values,
                    [&](const at::Tensor& from, const at::Tensor& to) { device_->upload(from, to); });
    if (state.placement == Placement::on_disk) part.values.reset();  // the disk has them
  }
  rebind(state, [&] { state.computing = copy; });
}

void ModelState::download(BlockId id) {
  State& state = state_of(id);
  for (Part& part : state.parts) {
    if (!part.sum.defined()) {
      MemoryScope scope(AllocationKind::gradients);
      part.sum = buffer(part.own.size(), at::kFloat);
    }
    device_->download(state.gradients.narrow(0, part.own.begin, part.own.size()), part.sum);
  }
  rebind(state, [&] { state.gradients.reset(); });
}

at::Tensor ModelState::download_input(const at::Tensor& input) {
  MemoryScope scope(AllocationKind::activations);
  at::Tensor parked = at::empty(input.sizes(), input.options().device(at::kCPU));
  device_->download(input, parked);
  return parked;
}

}  // namespace megalith
