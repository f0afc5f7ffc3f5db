#include "engine/model_state.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

std::span<float> floats(const at::Tensor& flat, int64_t offset, int64_t size) {
  return {flat.mutable_data_ptr<float>() + offset, static_cast<size_t>(size)};
}

// Deviates are made in whole Philox blocks, four elements each, so that any cut gives the same values.
void fill_normal(std::span<float> out, const Philox& random, float deviation) {
  at::parallel_for(0, static_cast<int64_t>(out.size() + 3) / 4, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      auto normals = random.normals(static_cast<uint64_t>(b));
      for (size_t i = 0; i < 4 && static_cast<size_t>(4 * b) + i < out.size(); i++) out[4 * b + i] = deviation * normals[i];
    }
  });
}

}  // namespace

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::bf16: return at::kBFloat16;
    case Precision::fp16: return at::kHalf;
    case Precision::fp32: break;
  }
  return at::kFloat;
}

ModelState::ModelState(const ModelShape& shape, Precision precision, const Optimizer* optimizer)
    : shape_(shape), compute_type_(compute_type(precision)) {
  for (auto& block : make_blocks(shape)) {
    State state;
    state.block = std::move(block);
    allocate(state, optimizer);
    state.block->bind(state.computing, state.gradients);
    blocks_.push_back(std::move(state));
  }
  if (shape.tied) head().tie(embedding().table());
}

void ModelState::allocate(State& state, const Optimizer* optimizer) {
  const BlockSpec& spec = state.block->spec();
  const auto type = at::TensorOptions().dtype(at::kFloat);
  {
    MemoryScope scope(AllocationKind::parameters);
    state.values = at::zeros({spec.flat_size}, type);
    state.computing = compute_type_ == at::kFloat ? state.values : at::zeros({spec.flat_size}, type.dtype(compute_type_));
  }
  if (!optimizer) return;
  {
    MemoryScope scope(AllocationKind::gradients);
    state.gradients = at::zeros({spec.flat_size}, type);
  }
  int64_t total = 0;
  for (const ParameterSpec& p : spec.parameters) {
    state.facts.push_back({p.name, p.shape, p.decays});
    auto& slots = state.slots.emplace_back();
    for (const SlotSpec& slot : optimizer->slots(state.facts.back())) {
      std::vector<int64_t> slot_shape = slot.extent == SlotExtent::element ? p.shape
                                        : slot.extent == SlotExtent::row   ? std::vector<int64_t>{p.shape.front()}
                                                                           : std::vector<int64_t>{p.shape.back()};
      int64_t size = 1;
      for (int64_t n : slot_shape) size *= n;
      slots.push_back({p.name + "." + slot.name, slot_shape, total, size});
      total += (size + kFlatAlign - 1) / kFlatAlign * kFlatAlign;
    }
  }
  MemoryScope scope(AllocationKind::optimizer);
  state.optimizer = at::zeros({total}, type);
}

void ModelState::initialise(uint64_t seed) {
  uint64_t number = 0;  // of the parameter in the model: the same for every layout
  for (State& state : blocks_)
    for (const ParameterSpec& p : state.block->spec().parameters) {
      std::span<float> out = floats(state.values, p.offset, p.size());
      if (p.initial_std > 0)
        fill_normal(out, Philox(seed, RandomUse::initial_weights, number), static_cast<float>(p.initial_std));
      else
        std::fill(out.begin(), out.end(), static_cast<float>(p.initial));
      number++;
    }
  values_changed();
}

void ModelState::values_changed() {
  if (compute_type_ == at::kFloat) return;
  for (State& state : blocks_) state.computing.copy_(state.values);
}

std::vector<NamedPart> ModelState::parameters(BlockId id) {
  State& state = blocks_[static_cast<size_t>(id)];
  std::vector<NamedPart> parts;
  for (const ParameterSpec& p : state.block->spec().parameters)
    parts.push_back({p.name, p.shape, floats(state.values, p.offset, p.size())});
  return parts;
}

std::vector<NamedPart> ModelState::gradients(BlockId id) {
  State& state = blocks_[static_cast<size_t>(id)];
  std::vector<NamedPart> parts;
  for (const ParameterSpec& p : state.block->spec().parameters)
    parts.push_back({p.name, p.shape, floats(state.gradients, p.offset, p.size())});
  return parts;
}

std::vector<NamedPart> ModelState::optimizer_state(BlockId id) {
  State& state = blocks_[static_cast<size_t>(id)];
  std::vector<NamedPart> parts;
  for (const auto& slots : state.slots)
    for (const Slot& slot : slots) parts.push_back({slot.name, slot.shape, floats(state.optimizer, slot.offset, slot.size)});
  return parts;
}

int64_t ModelState::optimizer_bytes(BlockId id) const {
  const State& state = blocks_[static_cast<size_t>(id)];
  return state.optimizer.defined() ? state.optimizer.numel() * int64_t{sizeof(float)} : 0;
}

ParameterSlice ModelState::slice(State& state, size_t parameter) const {
  const ParameterSpec& p = state.block->spec().parameters[parameter];
  ParameterSlice s{&state.facts[parameter], 0, floats(state.values, p.offset, p.size()),
                   floats(state.gradients, p.offset, p.size()), {}};
  for (const Slot& slot : state.slots[parameter]) s.slots.push_back(floats(state.optimizer, slot.offset, slot.size));
  return s;
}

double ModelState::gradient_squares(BlockId id) const {
  const State& state = blocks_[static_cast<size_t>(id)];
  double sum = 0;
  for (const ParameterSpec& p : state.block->spec().parameters)
    sum += sum_of_squares(floats(state.gradients, p.offset, p.size()));
  return sum;
}

void ModelState::update(BlockId id, const Optimizer& optimizer, const Update& update) {
  State& state = blocks_[static_cast<size_t>(id)];
  for (size_t i = 0; i < state.facts.size(); i++) {
    ParameterSlice whole = slice(state, i);
    std::vector<std::vector<double>> statistics;
    for (int round = 0; round < optimizer.statistics_rounds(); round++) {
      std::vector<double> sums(static_cast<size_t>(optimizer.statistics_size(state.facts[i], round)), 0.0);
      optimizer.gather(round, whole, update, statistics, sums);
      statistics.push_back(std::move(sums));
    }
    optimizer.apply(whole, update, statistics);
  }
  if (compute_type_ != at::kFloat) state.computing.copy_(state.values);
  clear_gradient(id);
}

void ModelState::clear_gradient(BlockId id) {
  // memset writes whole cache lines without reading them first, which LibTorch's fill does not.
  const at::Tensor& flat = blocks_[static_cast<size_t>(id)].gradients;
  float* data = flat.mutable_data_ptr<float>();
  at::parallel_for(0, flat.numel(), int64_t{1} << 18, [&](int64_t begin, int64_t end) {
    std::memset(data + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

}  // namespace megalith
