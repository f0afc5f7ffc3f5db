#include "schedule/ops/compute.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/block_update.h"
#include "engine/op_handler.h"
#include "layout/cuts.h"
#include "model/layers/contrastive_loss.h"
#include "model/layers/sequence_parallel.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

void count_targets(StepState& step, const Op&) {
  const int64_t targets = step.input.batch->target_count();
  const double scale = step.counters.loss_scale.scale;
  for (MicroState& micro : step.micros) {
    micro.pass.gradient_scale = scale / static_cast<double>(std::max<int64_t>(targets, 1));
    micro.pass.balance_scale = scale / static_cast<double>(step.input.batch->sequences);
  }
}

void forward(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto b = static_cast<size_t>(op.block);
  if (op.block == step.schedule.head()) {
    const at::Tensor& x_NC = micro.activations[b - 1];
    if (step.schedule.scores_batch()) micro.representations = step.model.head().represent(x_NC, micro.pass);
    else micro.sums = step.model.head().loss(x_NC, micro.pass);
    micro.activations[b - 1].reset();
    return;
  }
  const bool goes_back = step.schedule.goes_back(op.micro);
  const Keep keep = step.schedule.keeps(op.block);
  const at::Tensor x_NC = b > 0 ? std::move(micro.activations[b - 1]) : at::Tensor();
  if (goes_back && keep == Keep::input) micro.inputs[b] = x_NC;
  Tape* tape = goes_back && (keep == Keep::all || keep == Keep::attention) ? &micro.tapes[b] : nullptr;
  micro.activations[b] = step.model.block(op.block).forward(x_NC, micro.pass, tape);
  if (tape && keep == Keep::attention) tape->keep_attention();
}

void loss(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto before = static_cast<size_t>(op.block) - 1;
  const at::Tensor x_NC = std::move(micro.activations[before]);
  if (!step.schedule.scores_batch()) {
    micro.sums = step.model.head().loss_and_gradient(x_NC, micro.pass, micro.gradients[before]);
    return;
  }
  micro.gradients[before] = step.model.head().represent_backward(micro.representations, x_NC, micro.pass);
  micro.representations.reset();
}

// Every rank computes the loss of all sequences and keeps the gradients of its own. So gradients that are added over the
// ranks are those of the whole batch.
void batch_loss(StepState& step, const Op&) {
  const Schedule& schedule = step.schedule;
  const Batch& whole = *step.input.batch;
  std::vector<at::Tensor> own;
  for (MicroId m = 0; m < schedule.micros; m++)
    own.push_back(std::move(step.micros[static_cast<size_t>(schedule.first_pass + m)].representations));
  const bool shared = step.groups && !step.input.same_for_all;
  Exchange* replicas = shared ? step.groups->batch() : nullptr;
  const at::Tensor all_SC = gather_rows(replicas, tensor::cat(own), cut_points(whole.sequences, replicas ? replicas->size() : 1));
  own.clear();
  at::Tensor g_SC;
  const LossSums sums = contrastive_loss(all_SC, whole.text_marks(), whole.comparison, step.micros[0].pass.gradient_scale,
                                         schedule.training ? &g_SC : nullptr);
  if (!step.groups || step.groups->counts_batch_loss()) step.micros[0].sums = sums;
  if (!schedule.training) return;
  int64_t row = replicas ? step.groups->sequences_begin(whole.sequences) : 0;
  for (MicroId m = 0; m < schedule.micros; m++) {
    MicroState& micro = step.micros[static_cast<size_t>(m)];
    micro.representations = g_SC.narrow(0, row, micro.pass.sequences).clone();
    row += micro.pass.sequences;
  }
}

void recompute(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto b = static_cast<size_t>(op.block);
  Block& block = step.model.block(op.block);
  const at::Tensor x_NC = std::move(micro.inputs[b]);
  if (step.schedule.output_again(op.block)) micro.inputs[b + 1] = block.forward(x_NC, micro.pass, &micro.tapes[b]);
  else block.recompute(x_NC, micro.pass, micro.tapes[b]);
}

void backward(StepState& step, const Op& op) {
  MicroState& micro = step.micro(op);
  const auto b = static_cast<size_t>(op.block);
  Tape& tape = micro.tapes[b];
  // Held until backward is done: the plan counts its memory until then.
  const at::Tensor g_NC = micro.gradients[b];
  at::Tensor gx_NC = step.model.block(op.block).backward(g_NC, micro.pass, tape);
  micro.gradients[b].reset();
  if (b > 0) micro.gradients[b - 1] = std::move(gx_NC);
  MEGALITH_ASSERT(tape.empty(), "the backward of {} left tensors on its tape", step.model.at(op.block).spec().name);
}

void weight_gradient(StepState& step, const Op& op) {
  step.micro(op).tapes[static_cast<size_t>(op.block)].run_deferred();
}

void embedding_gradient(StepState& step, const Op&) { step.model.embedding().fold(); }

void gradient_norm(StepState& step, const Op& op) {
  step.squares[static_cast<size_t>(op.block)] = gradient_squares(step.model, op.block);
}

// Skips the step if loss or gradient is not finite, moves the loss scale, clips and records the update.
void prepare_update(StepState& step, const Op&) {
  const StepTotals& totals = totals_of(step);
  const double scale = step.counters.loss_scale.scale, norm = std::sqrt(totals.squares) / scale;
  step.outcome.gradient_norm = norm;
  step.outcome.loss_scale = scale;
  step.outcome.skipped = !std::isfinite(norm) || !std::isfinite(totals.loss);
  if (step.settings.precision == Precision::fp16) {
    LossScale next(step.counters.loss_scale);
    next.after_step(!step.outcome.skipped);
    step.counters.loss_scale = next.state();
  }
  if (step.outcome.skipped) return step.residency.discard_gradients();
  // The same scale as in torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
  const double clip = step.settings.clip > 0 ? std::min(1.0, step.settings.clip / (norm + 1e-6)) : 1.0;
  step.update = {step.input.lr, clip / scale, ++step.counters.updates, step.seed};
  step.residency.record_update(step.update);
}

void update_block(StepState& step, const Op& op) {
  if (step.outcome.skipped) clear_gradient(step.model, op.block);
  else optimizer_step(step.model, op.block, *step.optimizer, step.update);
}

}  // namespace

std::span<const OpHandler> compute_handlers() {
  static constexpr OpHandler all[] = {
      {ops::count_targets, count_targets},
      {ops::forward, forward},
      {ops::loss, loss},
      {ops::recompute, recompute},
      {ops::backward, backward},
      {ops::weight_gradient, weight_gradient},
      {ops::embedding_gradient, embedding_gradient},
      {ops::gradient_norm, gradient_norm},
      {ops::prepare_update, prepare_update},
      {ops::optimizer_step, update_block},
      {ops::batch_loss, batch_loss},
  };
  return all;
}

}  // namespace megalith
