#include "schedule/ops/residency.h"

#include "engine/op_handler.h"

namespace megalith {
namespace {

void offload_input(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto b = static_cast<size_t>(op.block);
  at::Tensor& input = micro.inputs[b];
  if (step.device.any()) micro.host_inputs[b] = step.device.download_input(input);
  else step.residency.offload_input(op.block, op.micro, op.lane, input);
  input.reset();
}

void reload_input(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto b = static_cast<size_t>(op.block);
  at::Tensor input = new_activation(step.model, micro.pass);
  if (step.device.any()) step.device.upload_input(micro.host_inputs[b], input);
  else step.residency.reload_input(op.block, op.micro, op.lane, input);
  micro.host_inputs[b].reset();
  micro.inputs[b] = std::move(input);
}

}  // namespace

std::span<const OpHandler> residency_handlers() {
  static constexpr OpHandler all[] = {
      {ops::load_updated,
       [](StepState& step, const Op& op) { step.residency.load_updated(op.block, op.lane, step.load_scope); }},
      {ops::load, [](StepState& step, const Op& op) { step.residency.load(op.block, op.lane); }},
      {ops::evict, [](StepState& step, const Op& op) { step.residency.evict(op.block); }},
      {ops::zero_gradient, [](StepState& step, const Op& op) { step.residency.zero_gradient(op.block); }},
      {ops::offload_gradient, [](StepState& step, const Op& op) { step.residency.offload_gradient(op.block, op.lane); }},
      {ops::offload_input, offload_input},
      {ops::reload_input, reload_input},
  };
  return all;
}

}  // namespace megalith
