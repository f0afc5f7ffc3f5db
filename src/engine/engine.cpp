#include "engine/engine.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/chores.h"
#include "base/error.h"
#include "engine/block_update.h"
#include "engine/forward.h"
#include "engine/op_handler.h"
#include "engine/threads.h"
#include "families/family.h"
#include "memory/allocator.h"
#include "model/local_rows.h"
#include "model/tensor_ops.h"
#include "schedule/lanes.h"
#include "schedule/op_type.h"

namespace megalith {
namespace {

at::Tensor to_tensor(const std::vector<int64_t>& values) {
  at::Tensor out = tensor::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

// The padding of a sequence is a document of its own. So text does not see it.
std::vector<int64_t> padding_as_documents(const Batch& batch) {
  std::vector<int64_t> begin;
  for (const int64_t tokens : batch.tokens)
    for (int64_t p = 0; p < batch.length; p++) begin.push_back(p < tokens ? 0 : tokens);
  return begin;
}

}  // namespace

struct Engine::Parts {
  TrainSettings settings;
  uint64_t seed;
  ProcessGroups* groups;  // null: this rank is alone
  std::unique_ptr<Optimizer> optimizer;
  BlockStates model;
  Residency residency;
  DeviceCopies device;
  StatePieces pieces;
  StepObserver* observer = nullptr;
  Lanes lanes;
  StepCounters counters;
  std::array<void (*)(StepState&, const Op&), 256> handlers{};

  Parts(const ModelShape& shape, const TrainSettings& train, uint64_t run_seed, bool training, const StorageOptions& storage,
        ProcessGroups* process_groups, const StageMap& stages)
      : settings(train),
        seed(run_seed),
        groups(process_groups),
        optimizer(training ? make_optimizer(train) : nullptr),
        model(shape, train.precision, optimizer.get(), storage, train.optimizer_state, groups ? groups->inside() : Exchanges{}, stages),
        residency(model, optimizer.get(), storage),
        device(model, storage.device),
        pieces(model, residency) {
    counters.loss_scale = LossScale::State::initial(train.precision);
    for (std::span<const OpHandler> family : {compute_handlers(), residency_handlers(), device_handlers(), ranks_handlers(),
                                              pipeline_handlers(), save_handlers()})
      add(family);
  }

  void add(std::span<const OpHandler> family) {
    for (const OpHandler& handler : family) handlers[static_cast<size_t>(handler.kind)] = handler.run;
  }

  ForwardParts forward() { return {.model = model, .residency = residency, .device = device, .groups = groups}; }
  Batch own_batch(const StepInput& input) const;
  Pass pass_for(const Batch& batch, int64_t step, bool training);
  void add_micros(StepState& step);
  void run_op(StepState& step, const Op& op);
};

Pass Engine::Parts::pass_for(const Batch& batch, int64_t step, bool training) {
  const ModelShape& shape = model.shape();
  Pass pass;
  pass.sequences = batch.sequences;
  pass.length = batch.length;
  pass.ids_N = to_tensor(batch.ids);
  pass.tokens_B = batch.tokens;
  if (!batch.tokens.empty()) pass.document_begin_N = to_tensor(padding_as_documents(batch));
  if (!batch.targets.empty()) pass.targets_N = to_tensor(batch.targets);
  pass.visibility = visibility_of(*shape.family, !batch.prefix.empty());
  pass.prefix_B = batch.prefix;
  if (!batch.document_begin.empty()) pass.document_begin_N = to_tensor(batch.document_begin);
  if (training) pass.dropping = batch.dropping;
  pass.dropout = training && shape.dropout.any();
  pass.explores = training;
  pass.experts = residency.experts();
  pass.seed = seed;
  pass.step = step;
  pass.first_sequence = batch.first_sequence;
  const Mesh& mesh = model.layout().mesh;
  return mesh.divides_rows() ? local_pass(std::move(pass), mesh) : pass;
}

Batch Engine::Parts::own_batch(const StepInput& input) const {
  if (!input.batch) return {};
  if (!groups || input.same_for_all) return *input.batch;
  const int64_t all = input.batch->sequences, each = groups->sequences_each(all);
  return input.batch->slice(groups->sequences_begin(all), each);
}

void Engine::Parts::add_micros(StepState& step) {
  const Schedule& schedule = step.schedule;
  const size_t blocks = schedule.blocks.size();
  for (int32_t m = 0; m < schedule.all_micros(); m++) {
    const int64_t each = step.batch.sequences / schedule.micros;
    MEGALITH_ASSERT(each * schedule.micros == step.batch.sequences, "micro-batches differ in size");
    MemoryScope scope(AllocationKind::activations);
    MicroState& micro = step.micros.emplace_back();
    // A micro-batch of the first pass shares its tensors with the one that goes back.
    micro.pass = m < schedule.micros ? pass_for(step.batch.slice(m * each, each), step.input.step, schedule.training)
                                     : step.micros[static_cast<size_t>(m - schedule.micros)].pass;
    for (std::vector<at::Tensor>* tensors : {&micro.activations, &micro.gradients, &micro.inputs, &micro.host_inputs})
      tensors->resize(blocks);
    micro.tapes.assign(blocks, Tape(settings.activations, schedule.defers_weight_gradients));
  }
  if (!schedule.training || !model.shape().experts.any()) return;
  for (MicroState& micro : std::span(step.micros).first(static_cast<size_t>(schedule.micros))) {
    micro.routing.resize(static_cast<size_t>(model.shape().layers));
    micro.pass.routing = &micro.routing;
  }
}

void Engine::Parts::run_op(StepState& step, const Op& op) {
  c10::InferenceMode lane_records_nothing;  // thread-local: every lane needs its own
  const OpType& type = type_of(op.kind);
  std::optional<Chores::Computing> helps;
  if (op.lane != Lane::compute) keep_to_one_thread();
  else if (type.computes) helps.emplace();
  MemoryScope scope(type.makes_activations ? AllocationKind::activations : AllocationKind::workspace);
  TierScope place(device.any() && type.computes ? Tier::device : Tier::host);
  if (observer) observer->op_begins(op);
  handlers[static_cast<size_t>(op.kind)](step, op);
  if (observer) observer->op_ends(op);
}

Engine::Engine(const ModelShape& shape, const TrainSettings& settings, uint64_t seed, bool training,
               const StorageOptions& storage, ProcessGroups* groups, const StageMap& stages)
    : parts_(std::make_unique<Parts>(shape, settings, seed, training, storage, groups, stages)) {}

Engine::~Engine() = default;

void Engine::observe(StepObserver* observer) { parts_->observer = observer; }
void Engine::add_handlers(std::span<const OpHandler> handlers) { parts_->add(handlers); }

StepOutcome Engine::run(const Schedule& schedule, const StepInput& input) {
  c10::InferenceMode no_graph;  // blocks compute their own gradients: autograd records nothing
  Parts& p = *parts_;
  for (const Op& op : schedule.ops)
    MEGALITH_ASSERT(p.handlers[static_cast<size_t>(op.kind)], "no handler for {}", describe(schedule, op));
  MEGALITH_ASSERT(schedule.layout.device == p.model.layout().device, "schedule and model use different devices");
  for (BlockId block = 0; block < static_cast<BlockId>(p.model.size()); block++)
    MEGALITH_ASSERT(schedule.home(block) == p.model.at(block).home, "{} is not where the schedule expects it",
                    schedule.blocks[static_cast<size_t>(block)].name);
  StepState step{.settings = p.settings,
                 .seed = p.seed,
                 .model = p.model,
                 .residency = p.residency,
                 .device = p.device,
                 .pieces = p.pieces,
                 .optimizer = p.optimizer.get(),
                 .groups = p.groups,
                 .counters = p.counters,
                 .schedule = schedule,
                 .input = input,
                 .batch = p.own_batch(input),
                 .squares = std::vector<double>(schedule.blocks.size(), 0)};
  // A save needs complete state. A step that only applies pending updates must apply all of them.
  if (input.sink || schedule.micros == 0) step.load_scope = LoadScope::all;
  const DiskUse before = p.residency.disk_use();
  p.add_micros(step);
  step.outcome.spans =
      p.lanes.run(schedule, [&](OpId id) { p.run_op(step, schedule.ops[static_cast<size_t>(id)]); });
  if (!p.groups && input.stop_requested && input.stop_requested()) totals_of(step).stops = 1;
  finish(step);
  step.outcome.disk = p.residency.disk_use() - before;
  return std::move(step.outcome);
}

at::Tensor Engine::logits(const std::vector<int64_t>& ids, int64_t sequences, KeyValueCache* cache, bool last_only) {
  c10::InferenceMode no_graph;
  TierScope place(parts_->device.any() ? Tier::device : Tier::host);
  Batch batch;
  batch.sequences = sequences;
  batch.length = static_cast<int64_t>(ids.size()) / sequences;
  batch.ids = ids;
  Pass pass = parts_->pass_for(batch, 0, false);
  if (cache) cache->prepare(shape(), parts_->model.format().compute_type, sequences, batch.length);
  pass.cache = cache;
  return forward_logits(parts_->forward(), pass, last_only);
}

std::vector<float> Engine::losses(const Batch& batch) {
  c10::InferenceMode no_graph;
  TierScope place(parts_->device.any() ? Tier::device : Tier::host);
  return forward_losses(parts_->forward(), parts_->pass_for(batch, 0, false));
}

std::vector<float> Engine::representations(const Batch& batch) {
  c10::InferenceMode no_graph;
  TierScope place(parts_->device.any() ? Tier::device : Tier::host);
  return forward_representations(parts_->forward(), parts_->pass_for(batch, 0, false));
}

const ModelShape& Engine::shape() const { return parts_->model.shape(); }
StatePieces& Engine::state() { return parts_->pieces; }
void Engine::clear_gradients() {
  for (BlockId id = 0; id < static_cast<BlockId>(parts_->model.size()); id++) clear_gradient(parts_->model, id);
}
const BlockStore* Engine::store() const { return parts_->residency.store(); }
const Optimizer& Engine::optimizer() const { return *parts_->optimizer; }
StepCounters Engine::counters() const { return parts_->counters; }
void Engine::restore(const StepCounters& counters) { parts_->counters = counters; }

}  // namespace megalith
