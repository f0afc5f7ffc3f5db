#include "engine/engine.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/chores.h"
#include "base/error.h"
#include "engine/exchange_buffer.h"
#include "engine/one_thread.h"
#include "families/family.h"
#include "memory/allocator.h"
#include "model/share.h"
#include "optim/sign_steps.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

at::Tensor to_tensor(const std::vector<int64_t>& values) {
  at::Tensor out = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

// What is done with blocks and activations, where those are; everything else is the host's.
bool computes(OpKind kind) {
  switch (kind) {
    case ops::forward:
    case ops::loss:
    case ops::recompute:
    case ops::backward:
    case ops::weight_gradient:
    case ops::embedding_gradient: return true;
    default: return false;
  }
}

// A block is in memory while this lives, for work without a schedule.
class Present {
 public:
  Present(ModelState& model, BlockId id, Team* team) : model_(model), id_(id) {
    TierScope home(Tier::host);
    if (model.placement(id) != Placement::in_memory) model.renew(id, Lane::compute, ModelState::Bring::likely);
    if (model.slices()) model.gather(id, {team->everyone(), team->everyone()});  // the replicas are all there are
    if (model.on_device()) model.upload(id);
  }
  ~Present() {
    if (!model_.parameters_stay(id_)) model_.drop(id_);
  }
  Present(const Present&) = delete;
  Present& operator=(const Present&) = delete;

 private:
  ModelState& model_;
  BlockId id_;
};

}  // namespace

struct Engine::Run {
  struct Micro {
    Pass pass;
    std::vector<at::Tensor> activations;  // by block: its output, until the next one has taken it
    std::vector<at::Tensor> inputs;       // by block, of those that are recomputed
    std::vector<at::Tensor> parked;       // by block: of a device, those that wait in the host's memory
    std::vector<at::Tensor> gradients;    // by block: of its output
    std::vector<Tape> tapes;              // by block
    LossSums sums;
    RoutingRecord routing;                // of a model with experts
  };
  const Schedule* schedule = nullptr;
  StepInput input;
  Batch batch;                     // this rank's
  std::vector<Micro> micros;
  std::vector<double> squares;     // of the gradients, by block
  Update update;
  ModelState::Bring brings = ModelState::Bring::likely;
  StepOutcome outcome;
};

Engine::Engine(const ModelShape& shape, const TrainSettings& settings, uint64_t seed, bool training,
               const Residence& residence, Team* team, const Division& division)
    : settings_(settings),
      seed_(seed),
      team_(team),
      optimizer_(training ? with_sign_steps(make_optimizer(settings)) : nullptr),
      model_(shape, settings.precision, optimizer_.get(), residence, settings.optimizer_state,
             team ? ModelPart{division, team->replicas_net().all.place(), team->replicas_net().of_experts.place(),
                              team->inside()}
                  : ModelPart{division, 0, 0, {}}) {
  if (settings.precision != Precision::fp16) counters_.loss_scale.scale = 1;
}

Pass Engine::pass_for(const Batch& batch, int64_t step, bool training) {
  Pass pass;
  pass.sequences = batch.sequences;
  pass.length = batch.length;
  pass.ids_N = to_tensor(batch.ids);
  if (!batch.targets.empty()) pass.targets_N = to_tensor(batch.targets);
  pass.visibility = model_.shape().family->bidirectional ? Visibility::all
                    : batch.prefix.empty()               ? Visibility::causal
                                                      : Visibility::prefix;
  pass.prefix_B = batch.prefix;
  if (!batch.document_begin.empty()) pass.document_begin_N = to_tensor(batch.document_begin);
  if (training) pass.dropping = batch.dropping;
  pass.dropout = training && model_.shape().dropout.any();
  pass.explores = training;
  pass.shelf = model_.shelf();
  pass.seed = seed_;
  pass.step = step;
  pass.first_sequence = batch.first_sequence;
  return team_ && team_->split().any() ? share_of(std::move(pass), team_->split()) : pass;
}

Batch Engine::part_of(const StepInput& input) const {
  if (!team_ || input.same_for_all) return *input.batch;
  const int64_t all = input.batch->sequences, each = team_->sequences_each(all);
  return input.batch->slice(team_->sequences_begin(all), each);
}

StepOutcome Engine::run(const Schedule& schedule, const StepInput& input) {
  c10::InferenceMode no_graph;  // gradients are the blocks' business: nothing is recorded
  Run run;
  run.schedule = &schedule;
  run.input = input;
  run.squares.assign(schedule.blocks.size(), 0);
  // What is saved is whole, and so is what a step of renewals leaves.
  if (input.sink || schedule.micros == 0) run.brings = ModelState::Bring::all;
  const DiskUse before = model_.disk_use();
  if (input.batch) run.batch = part_of(input);
  for (int32_t m = 0; m < schedule.micros; m++) {
    int64_t each = run.batch.sequences / schedule.micros;
    MEGALITH_ASSERT(each * schedule.micros == run.batch.sequences, "micro-batches are equal cuts");
    MemoryScope scope(AllocationKind::activations);
    run.micros.push_back(
        {pass_for(run.batch.slice(m * each, each), input.step, schedule.training), {}, {}, {}, {}, {}, {}, {}});
    run.micros.back().activations.resize(schedule.blocks.size());
    run.micros.back().gradients.resize(schedule.blocks.size());
    run.micros.back().tapes.assign(schedule.blocks.size(), Tape(settings_.activations, schedule.defers_weight_gradients));
    run.micros.back().inputs.resize(schedule.blocks.size());
    run.micros.back().parked.resize(schedule.blocks.size());
  }
  if (schedule.training && model_.shape().experts.any())
    for (Run::Micro& micro : run.micros) {
      micro.routing.resize(static_cast<size_t>(model_.shape().layers));
      micro.pass.routing = &micro.routing;
    }
  run.outcome.spans = lanes_.run(schedule, [&](OpId id) {
    c10::InferenceMode lane_records_nothing;  // thread-local: every lane says so
    const Op& op = schedule.ops[static_cast<size_t>(id)];
    std::optional<Chores::Computing> comes_by;
    if (op.lane != Lane::compute) keep_to_one_thread();
    else if (computes(op.kind)) comes_by.emplace();
    if (watch_) watch_->enter(op);
    execute(run, op);
    if (watch_) watch_->leave(op);
  });
  if (!team_) {
    for (const Run::Micro& micro : run.micros) {
      run.outcome.loss += micro.sums.loss;
      run.outcome.targets += micro.sums.targets;
    }
    run.outcome.routing = record_of(routing_numbers(run), model_.shape().experts.count);
    run.outcome.stop = input.stop_requested && input.stop_requested();
  }
  run.outcome.disk = model_.disk_use() - before;
  if (run.outcome.targets > 0) run.outcome.loss /= static_cast<double>(run.outcome.targets);
  return std::move(run.outcome);
}

void Engine::execute(Run& run, const Op& op) {
  MemoryScope scope(op.kind == ops::forward ? AllocationKind::activations : AllocationKind::workspace);
  TierScope place(model_.on_device() && computes(op.kind) ? Tier::device : Tier::host);
  const Schedule& schedule = *run.schedule;
  Run::Micro* micro = op.micro == kNoMicro ? nullptr : &run.micros[static_cast<size_t>(op.micro)];
  switch (op.kind) {
    case ops::count_targets: {
      int64_t targets = run.input.batch->target_count();
      for (Run::Micro& m : run.micros) {
        m.pass.gradient_scale = counters_.loss_scale.scale / static_cast<double>(std::max<int64_t>(targets, 1));
        m.pass.balance_scale = counters_.loss_scale.scale / static_cast<double>(run.input.batch->sequences);
      }
      break;
    }
    case ops::forward: forward(schedule, op.block, run, op.micro); break;
    case ops::loss: {
      const auto before = static_cast<size_t>(op.block) - 1;
      at::Tensor x_NC = std::move(micro->activations[before]);
      micro->sums = model_.head().loss_and_gradient(x_NC, micro->pass, micro->gradients[before]);
      break;
    }
    case ops::recompute: recompute(schedule, op.block, run, op.micro); break;
    case ops::backward: {
      const auto b = static_cast<size_t>(op.block);
      Tape& tape = micro->tapes[b];
      // Held until it has gone back: its place is counted until then.
      const at::Tensor g_NC = micro->gradients[b];
      at::Tensor gx_NC = model_.block(op.block).backward(g_NC, micro->pass, tape);
      micro->gradients[b].reset();
      if (b > 0) micro->gradients[b - 1] = std::move(gx_NC);
      MEGALITH_ASSERT(tape.empty(), "{} left something on its tape", model_.block(op.block).spec().name);
      break;
    }
    case ops::weight_gradient: micro->tapes[static_cast<size_t>(op.block)].weigh(); break;
    case ops::embedding_gradient: model_.embedding().fold(); break;
    case ops::gradient_norm: run.squares[static_cast<size_t>(op.block)] = model_.gradient_squares(op.block); break;
    case ops::prepare_update: clip(run); break;
    case ops::optimizer_step:
      if (run.outcome.skipped) model_.clear_gradient(op.block);
      else model_.update(op.block, *optimizer_, run.update);
      break;
    case ops::load_updated: model_.renew(op.block, op.lane, run.brings); break;
    case ops::load: model_.fetch(op.block, op.lane); break;
    case ops::evict: model_.drop(op.block); break;
    case ops::zero_gradient: model_.clear(op.block); break;
    case ops::offload_gradient: model_.stow(op.block, op.lane); break;
    case ops::offload_input: {
      at::Tensor& input = micro->inputs[static_cast<size_t>(op.block)];
      micro->parked[static_cast<size_t>(op.block)] = model_.park(op.block, op.micro, op.lane, input);
      input.reset();
      break;
    }
    case ops::reload_input: {
      at::Tensor input = activation_of(micro->pass);
      at::Tensor& parked = micro->parked[static_cast<size_t>(op.block)];
      model_.unpark(op.block, op.micro, op.lane, parked, input);
      parked.reset();
      micro->inputs[static_cast<size_t>(op.block)] = std::move(input);
      break;
    }
    case ops::upload: model_.upload(op.block); break;
    case ops::download: model_.download(op.block); break;
    case ops::gather_parameters: model_.gather(op.block, team_->replicas_net()); break;
    case ops::reduce_gradient: model_.reduce(op.block, team_->replicas_net(), team_->tensor_net()); break;
    case ops::all_reduce_totals: total(run); break;
    case ops::send_activation:
    case ops::receive_activation:
    case ops::send_output_gradient:
    case ops::receive_output_gradient:
    case ops::sync_tied_table:
    case ops::sync_tied_gradient: exchange(run, op); break;
    case ops::save: save(op.block, *run.input.sink); break;
    case ops::commit: run.input.sink->commit(); break;
  }
}

void Engine::forward(const Schedule& schedule, BlockId block, Run& run, MicroId number) {
  Run::Micro& micro = run.micros[static_cast<size_t>(number)];
  const auto b = static_cast<size_t>(block);
  if (b + 1 == model_.size()) {
    micro.sums = model_.head().loss(micro.activations[b - 1], micro.pass);
    micro.activations[b - 1].reset();
    return;
  }
  const Keep keep = schedule.keeps(block);
  const at::Tensor x_NC = b > 0 ? std::move(micro.activations[b - 1]) : at::Tensor();
  if (schedule.training && keep == Keep::input) micro.inputs[b] = x_NC;
  Tape* tape = schedule.training && (keep == Keep::all || keep == Keep::attention) ? &micro.tapes[b] : nullptr;
  micro.activations[b] = model_.block(block).forward(x_NC, micro.pass, tape);
  if (tape && keep == Keep::attention) tape->keep_attention();
}

void Engine::recompute(const Schedule& schedule, BlockId block, Run& run, MicroId number) {
  Run::Micro& micro = run.micros[static_cast<size_t>(number)];
  const auto b = static_cast<size_t>(block);
  at::Tensor x_NC = std::move(micro.inputs[b]);
  if (schedule.output_again(block)) micro.inputs[b + 1] = model_.block(block).forward(x_NC, micro.pass, &micro.tapes[b]);
  else model_.block(block).remake(x_NC, micro.pass, micro.tapes[b]);
}

at::Tensor Engine::activation_of(const Pass& pass) const {
  MemoryScope scope(AllocationKind::activations);
  TierScope place(model_.on_device() ? Tier::device : Tier::host);
  return at::empty({pass.rows(), model_.shape().hidden}, at::TensorOptions().dtype(compute_type(settings_.precision)));
}

std::vector<double> Engine::routing_numbers(const Run& run) const {
  std::vector<double> sums;
  for (const Run::Micro& micro : run.micros) {
    const std::vector<double> own = numbers_of(micro.routing, model_.shape().experts.count);
    sums.resize(own.size(), 0);
    for (size_t i = 0; i < own.size(); i++) sums[i] += own[i];
  }
  return sums;
}

void Engine::total(Run& run) {
  const bool counts = team_->counts_losses() && (!run.input.same_for_all || team_->mesh().first(Axis::data));
  // Loss, targets, squares of the gradient, who was asked to stop.
  std::vector<double> sums{0, 0, 0, run.input.stop_requested && run.input.stop_requested() ? 1.0 : 0.0};
  for (const Run::Micro& micro : run.micros) {
    sums[0] += counts ? micro.sums.loss : 0;
    sums[1] += counts ? static_cast<double>(micro.sums.targets) : 0;
  }
  for (double s : run.squares) sums[2] += s;
  const size_t plain = sums.size();
  // Ranks that share sequences or the inside of blocks know the same of their routers.
  const bool routes = team_->mesh().first(Axis::tensor) && team_->mesh().first(Axis::context);
  for (double number : routing_numbers(run)) sums.push_back(routes ? number : 0);
  team_->everyone().all_reduce(std::span<double>(sums));
  run.outcome.routing =
      record_of({sums.begin() + static_cast<std::ptrdiff_t>(plain), sums.end()}, model_.shape().experts.count);
  run.outcome.loss = sums[0];
  run.outcome.targets = static_cast<int64_t>(sums[1]);
  run.squares.assign(1, sums[2]);
  run.outcome.stop = sums[3] > 0;
}

void Engine::exchange(Run& run, const Op& op) {
  const Schedule& schedule = *run.schedule;
  const auto b = static_cast<size_t>(op.block);
  Run::Micro* micro = op.micro == kNoMicro ? nullptr : &run.micros[static_cast<size_t>(op.micro)];
  const auto taken = [&](at::Tensor& from, Channel& way, BlockId to) {
    way.send(bytes_of(from), schedule.stage(to));
    from.reset();
  };
  const auto received = [&](Channel& way, BlockId from) {
    at::Tensor x = activation_of(micro->pass);
    way.receive(bytes_of(x), schedule.stage(from));
    return x;
  };
  switch (op.kind) {
    case ops::send_activation: taken(micro->activations[b], team_->forward_way(), op.block + 1); break;
    case ops::receive_activation: micro->activations[b] = received(team_->forward_way(), op.block); break;
    case ops::send_output_gradient: taken(micro->gradients[b], team_->backward_way(), op.block); break;
    case ops::receive_output_gradient: micro->gradients[b] = received(team_->backward_way(), op.block + 1); break;
    default: {
      const int peer = schedule.stage(schedule.borrows(op.block) ? op.block : schedule.head());
      if (op.kind == ops::sync_tied_table) model_.lend(op.block, team_->table_way(), peer);
      else model_.collect(op.block, team_->table_way(), peer);
    }
  }
}

void Engine::clip(Run& run) {
  double squares = 0;
  for (double s : run.squares) squares += s;
  const double scale = counters_.loss_scale.scale, norm = std::sqrt(squares) / scale;
  double loss = run.outcome.loss;  // of all ranks, where there are several
  for (const Run::Micro& m : run.micros)
    if (!team_) loss += m.sums.loss;
  run.outcome.gradient_norm = norm;
  run.outcome.loss_scale = scale;
  run.outcome.skipped = !std::isfinite(norm) || !std::isfinite(loss);
  if (settings_.precision == Precision::fp16) {
    LossScale next(counters_.loss_scale);
    next.after_step(!run.outcome.skipped);
    counters_.loss_scale = next.state();
  }
  if (run.outcome.skipped) {
    model_.forget_gradients();
    return;
  }
  // As torch.nn.utils.clip_grad_norm_ scales: max_norm / (norm + 1e-6), at most 1.
  double clip = settings_.clip > 0 ? std::min(1.0, settings_.clip / (norm + 1e-6)) : 1.0;
  run.update = {run.input.lr, clip / scale, ++counters_.updates, seed_};
  model_.leave_pending(run.update);
}

void Engine::save(BlockId block, PartSink& sink) {
  model_.read_parameters(block, Lane::write, [&](const NamedPart& part) { sink.write(PartSink::Kind::parameter, part); });
  model_.read_optimizer(block, Lane::write, [&](const NamedPart& part) { sink.write(PartSink::Kind::optimizer, part); });
}

at::Tensor Engine::forward_alone(const Pass& pass) {
  at::Tensor x_NC;
  for (BlockId b = 0; b + 1 < static_cast<BlockId>(model_.size()); b++) {
    Present present(model_, b, team_);
    x_NC = model_.block(b).forward(x_NC, pass, nullptr);
  }
  return x_NC;
}

at::Tensor Engine::logits(const std::vector<int64_t>& ids, int64_t sequences, KeyValueCache* cache, bool last_only) {
  c10::InferenceMode no_graph;
  TierScope place(model_.on_device() ? Tier::device : Tier::host);
  Batch batch;
  batch.sequences = sequences;
  batch.length = static_cast<int64_t>(ids.size()) / sequences;
  batch.ids = ids;
  Pass pass = pass_for(batch, 0, false);
  if (cache) cache->prepare(model_.shape(), compute_type(settings_.precision), sequences, batch.length);
  pass.cache = cache;
  at::Tensor x_NC = forward_alone(pass);
  if (cache) cache->advance(batch.length);
  if (last_only)
    x_NC = x_NC.view({sequences, batch.length, x_NC.size(1)}).select(1, batch.length - 1).contiguous();
  Present table(model_, 0, team_), head(model_, static_cast<BlockId>(model_.size()) - 1, team_);
  return model_.head().logits(x_NC).to(at::kFloat);
}

std::vector<float> Engine::losses(const Batch& batch) {
  c10::InferenceMode no_graph;
  TierScope place(model_.on_device() ? Tier::device : Tier::host);
  Pass pass = pass_for(batch, 0, false);
  at::Tensor x_NC = forward_alone(pass), each_N;
  Present table(model_, 0, team_), head(model_, static_cast<BlockId>(model_.size()) - 1, team_);
  model_.head().loss(x_NC, pass, &each_N);
  each_N = each_N.to(at::kFloat).contiguous();
  return {each_N.const_data_ptr<float>(), each_N.const_data_ptr<float>() + each_N.numel()};
}

}  // namespace megalith
