#include "engine/device_copies.h"

#include "base/error.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"
#include "model/tensor_ops.h"

namespace megalith {

void DeviceCopies::upload(BlockId id) {
  BlockState& state = model_.at(id);
  MEGALITH_ASSERT(!state.computing.defined(), "{}", state.spec().name);
  MemoryScope scope(AllocationKind::parameters);
  const at::ScalarType type = model_.format().compute_type;
  const at::Tensor copy = device_->empty({computing_elements(state.spec(), type)}, type);
  for (SegmentState& segment : state.segments) {
    write_computing(state.spec(), copy, segment.own.begin, segment.values,
                    [&](const at::Tensor& from, const at::Tensor& to) { device_->upload(from, to); });
    if (state.home.placement == Placement::on_disk) segment.values.reset();  // the disk has a copy
  }
  model_.rebind(state, [&] { state.computing = copy; });
}

void DeviceCopies::download(BlockId id) {
  BlockState& state = model_.at(id);
  for (SegmentState& segment : state.segments) {
    if (!segment.gradient.defined()) {
      MemoryScope scope(AllocationKind::gradients);
      segment.gradient = flat_buffer(segment.own.size(), at::kFloat);
    }
    device_->download(state.gradients.narrow(0, segment.own.begin, segment.own.size()), segment.gradient);
  }
  model_.rebind(state, [&] { state.gradients.reset(); });
}

at::Tensor DeviceCopies::download_input(const at::Tensor& input) {
  MEGALITH_ASSERT(input.is_contiguous());
  MemoryScope scope(AllocationKind::activations);
  at::Tensor copy = tensor::empty(input.sizes(), input.options().device(at::kCPU));
  device_->download(input, copy);
  return copy;
}

}  // namespace megalith
