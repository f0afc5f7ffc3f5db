#include "schedule/ops/pipeline.h"

#include "engine/exchange_buffer.h"
#include "engine/op_handler.h"
#include "engine/replica_sync.h"

namespace megalith {
namespace {

void send(StepState& step, at::Tensor& from, Channel& channel, BlockId to) {
  channel.send(bytes_of(from), step.schedule.stage(to));
  from.reset();
}

at::Tensor receive(StepState& step, const Op& op, Channel& channel, BlockId from) {
  at::Tensor x = new_activation(step.model, step.micro(op).pass);
  channel.receive(bytes_of(x), step.schedule.stage(from));
  return x;
}

// Returns the other stage that uses the tied table.
int table_peer(const StepState& step, const Op& op) {
  return step.schedule.stage(step.schedule.borrows(op.block) ? op.block : step.schedule.head());
}

at::Tensor& activation(StepState& step, const Op& op) { return step.micro(op).activations[static_cast<size_t>(op.block)]; }
at::Tensor& gradient(StepState& step, const Op& op) { return step.micro(op).gradients[static_cast<size_t>(op.block)]; }

}  // namespace

std::span<const OpHandler> pipeline_handlers() {
  static constexpr OpHandler all[] = {
      {ops::send_activation,
       [](StepState& step, const Op& op) { send(step, activation(step, op), step.groups->pipeline_forward(), op.block + 1); }},
      {ops::receive_activation,
       [](StepState& step, const Op& op) { activation(step, op) = receive(step, op, step.groups->pipeline_forward(), op.block); }},
      {ops::send_output_gradient,
       [](StepState& step, const Op& op) { send(step, gradient(step, op), step.groups->pipeline_backward(), op.block); }},
      {ops::receive_output_gradient,
       [](StepState& step, const Op& op) {
         gradient(step, op) = receive(step, op, step.groups->pipeline_backward(), op.block + 1);
       }},
      {ops::sync_tied_table,
       [](StepState& step, const Op& op) {
         sync_tied_table(step.model, op.block, step.groups->pipeline_table(), table_peer(step, op));
       }},
      {ops::sync_tied_gradient,
       [](StepState& step, const Op& op) {
         sync_tied_gradient(step.model, op.block, step.groups->pipeline_table(), table_peer(step, op));
       }},
  };
  return all;
}

}  // namespace megalith
