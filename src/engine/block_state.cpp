#include "engine/block_state.h"

#include <ATen/Parallel.h>

#include <cstring>

#include "base/error.h"
#include "families/blocks.h"
#include "layout/cuts.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"
#include "model/tensor_ops.h"

namespace megalith {

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::bf16: return at::kBFloat16;
    case Precision::fp16: return at::kHalf;
    case Precision::fp32: break;
  }
  return at::kFloat;
}

at::Tensor flat_buffer(int64_t elements, at::ScalarType type) {
  return type == at::kFloat ? disk_buffer(elements) : tensor::empty({elements}, at::TensorOptions().dtype(type));
}

void zero(const at::Tensor& flat) {
  // memset writes whole cache lines without reading them first, which LibTorch's fill does not.
  float* data = flat.mutable_data_ptr<float>();
  at::parallel_for(0, flat.numel(), int64_t{1} << 18, [&](int64_t begin, int64_t end) {
    std::memset(data + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

std::span<float> floats_of(const at::Tensor& flat, int64_t offset, int64_t size) {
  if (!flat.defined()) return {};
  return {flat.mutable_data_ptr<float>() + offset, static_cast<size_t>(size)};
}

const SegmentState& BlockState::segment_of(const ParameterSpec& parameter) const {
  size_t segment = segments.size() - 1;
  while (parameter.offset < segments[segment].flat.begin) segment--;
  return segments[segment];
}

SegmentState& BlockState::segment_of(const ParameterSpec& parameter) {
  return const_cast<SegmentState&>(std::as_const(*this).segment_of(parameter));
}

ParameterSlice BlockState::slice(size_t parameter) const {
  const ParameterSpec& p = spec().parameters[parameter];
  const SegmentState& segment = segment_of(p);
  const Overlap here = overlap(p, segment.own);
  ParameterSlice slice{&facts[parameter], here.begin, floats_of(segment.values, here.at, here.count),
                       floats_of(segment.gradient, here.at, here.count), {}};
  for (const Slot& slot : slots[parameter]) slice.slots.push_back(floats_of(segment.optimizer, slot.offset, slot.size));
  return slice;
}

BlockStates::BlockStates(const ModelShape& shape, Precision precision, const Optimizer* optimizer,
                         const StorageOptions& storage, Packing packing, const Exchanges& exchanges,
                         const StageMap& stages)
    : shape_(shape), layout_{exchanges.mesh, stages, storage.device != nullptr} {
  MEGALITH_ASSERT(!storage.device || layout_.sizes().ranks() == 1);
  format_.compute_type = compute_type(precision);
  format_.packing = packing;
  format_.training = optimizer != nullptr;
  if (optimizer && optimizer->statistics_rounds() == 0)
    format_.slot_arrays = static_cast<int>(optimizer->slots({"any", {1, 1}, true}).size());
  MEGALITH_ASSERT(!optimizer || !format_.packs() || format_.elementwise(),
                  "only the state of an elementwise optimizer is packed");
  auto blocks = make_blocks(shape, exchanges);
  const std::vector<Home> at = homes(layout_, blocks.size(), storage.placement);
  for (auto& block : blocks) {
    BlockState& state = blocks_.emplace_back();
    state.block = std::move(block);
    state.home = at[blocks_.size() - 1];
    divide(state);
    for (SegmentState& segment : state.segments) segment.format.emplace(state.spec(), packing, segment.own);
    if (optimizer) lay_out_optimizer(state, *optimizer);
    allocate(state);
  }
  for (BlockState& state : blocks_) bind(state);
}

void BlockStates::divide(BlockState& state) {
  const Home& home = state.home;
  // A block with a separate master is always loaded whole, so its experts need no segments of their own.
  const std::vector<Segment>& parts = state.spec().segments;
  for (const Segment& spec : layout_.separate_master() ? by_ranks(parts) : parts) {
    SegmentState& segment = state.segments.emplace_back();
    segment.flat = spec.range;
    segment.spread = spec.spread;
    segment.stored = segments_++;
    if (!home.here) continue;
    const Mesh& mesh = layout_.mesh;
    const int32_t replicas = segment.spread ? mesh.layout().expert_replicas() : mesh.layout().replicas();
    const std::vector<int64_t> cuts = even_cuts(segment.flat.size(), replicas);
    const auto place = static_cast<size_t>(segment.spread ? mesh.expert_replica() : mesh.replica());
    // Load experts on demand only without replicas: a rank does not know which experts the tokens of a replica chose.
    if (home.placement != Placement::in_memory && (format_.elementwise() || !format_.training) && replicas == 1)
      segment.expert = spec.expert;
    segment.counted = {segment.flat.begin + cuts[place], segment.flat.begin + cuts[place + 1]};
    segment.own = home.sliced ? segment.counted : segment.flat;
  }
}

void BlockStates::lay_out_optimizer(BlockState& state, const Optimizer& optimizer) {
  for (const ParameterSpec& p : state.spec().parameters) {
    SegmentState& segment = state.segment_of(p);
    state.facts.push_back(
        {.name = p.name, .shape = p.shape, .decays = p.decays, .number = p.number, .sign_rate = p.sign_rate});
    auto& slots = state.slots.emplace_back();
    const std::vector<SlotSpec> wanted = optimizer.slots(state.facts.back());
    MEGALITH_ASSERT(!format_.elementwise() || static_cast<int>(wanted.size()) == format_.slot_arrays, "{}", p.name);
    for (size_t k = 0; k < wanted.size(); k++) {
      const std::string name = p.name + "." + wanted[k].name;
      if (format_.elementwise()) {
        const Overlap here = overlap(p, segment.own);
        slots.push_back({name, p.whole_shape, static_cast<int64_t>(k) * segment.own.size() + here.at, here.count});
        continue;
      }
      // An optimizer that reads rows and columns needs whole parameters.
      MEGALITH_ASSERT(!state.home.sliced && !p.is_cut(), "{} is divided among ranks", p.name);
      std::vector<int64_t> shape = wanted[k].extent == SlotExtent::element ? p.shape
                                   : wanted[k].extent == SlotExtent::row   ? std::vector<int64_t>{p.shape.front()}
                                                                           : std::vector<int64_t>{p.shape.back()};
      int64_t size = 1;
      for (int64_t n : shape) size *= n;
      slots.push_back({name, shape, segment.optimizer_size, size});
      segment.optimizer_size += (size + kFlatAlign - 1) / kFlatAlign * kFlatAlign;
    }
  }
}

void BlockStates::allocate(BlockState& state) {
  const Home& home = state.home;
  if (!home.here) return;
  const auto type = at::TensorOptions().dtype(at::kFloat);
  const auto own_of = [&](const SegmentState& segment, const at::Tensor& whole, bool within) {
    return within ? whole.narrow(0, segment.own.begin, segment.own.size()) : tensor::zeros({segment.own.size()}, type);
  };
  if (home.placement != Placement::on_disk) {
    MemoryScope scope(AllocationKind::parameters);
    if (home.parameters_stay)
      state.computing = tensor::zeros({computing_elements(state.spec(), format_.compute_type)}, type.dtype(format_.compute_type));
    for (SegmentState& segment : state.segments)
      segment.values = own_of(segment, state.computing, home.parameters_stay && format_.wide());
  }
  if (!format_.training) return;
  if (home.placement != Placement::on_disk) {
    MemoryScope scope(AllocationKind::gradients);
    if (home.gradient_stays) state.gradients = tensor::zeros({state.spec().flat_size}, type);
    for (SegmentState& segment : state.segments) segment.gradient = own_of(segment, state.gradients, home.gradient_stays);
  }
  if (home.placement == Placement::in_memory || !format_.elementwise()) {
    MemoryScope scope(AllocationKind::optimizer);
    for (SegmentState& segment : state.segments) {
      if (!format_.elementwise()) segment.optimizer = tensor::zeros({segment.optimizer_size}, type);
      else if (format_.packs())
        segment.optimizer = tensor::zeros({format_.slot_arrays * segment.format->slot_bytes()}, type.dtype(at::kByte));
      else segment.optimizer = tensor::zeros({format_.slot_arrays * segment.own.size()}, type);
    }
  }
}

void BlockStates::bind(BlockState& state) {
  state.block->bind(state.computing, state.gradients);
  if (shape_.ties_table() && &state == &blocks_.front()) head().tie(embedding().table());
}

void BlockStates::rebind(BlockState& state, const std::function<void()>& change) {
  std::lock_guard turn(binding_);
  change();
  bind(state);
}

void BlockStates::copy_to_computing(BlockState& state, const SegmentState& segment) {
  write_computing(state.spec(), state.computing, segment.own.begin, segment.values);
}

void BlockStates::values_changed() {
  if (format_.wide()) return;
  for (BlockState& state : blocks_)
    for (const SegmentState& segment : state.segments)
      if (segment.values.defined() && state.home.parameters_stay) copy_to_computing(state, segment);
}

bool BlockStates::counts(const ParameterSpec& p) const { return p.is_cut() || layout_.mesh.first(Axis::tensor); }

}  // namespace megalith
