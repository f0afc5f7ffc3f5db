#include "planner/plan.h"

#include <algorithm>

#include "base/error.h"
#include "memory/machine.h"
#include "model/facts.h"
#include "optim/optimizer.h"
#include "planner/calibration.h"
#include "schedule/base_pass.h"
#include "schedule/checker.h"
#include "schedule/save_pass.h"

namespace megalith {
namespace {

// Beyond this many tokens at once matrix products get no faster, but activations grow.
constexpr int64_t kTokensEnough = 4096;

MicroBatchShape micro_shape(const Config& config, int64_t sequences) {
  double targets = config.objective.kind == Objective::masked ? config.objective.mask_fraction : 1.0;
  // The steps that drop least are the largest.
  const int64_t kept = config.token_dropping.on() ? static_cast<int64_t>(config.token_dropping.pacing.to) : 0;
  const bool drops = kept < config.data.sequence && kept > 0;
  return {.sequences = sequences,
          .length = config.data.sequence,
          .target_fraction = targets,
          .micros = config.train.batch / sequences,
          .kept = drops ? kept : 0,
          .dropping_layers = drops ? config.token_dropping.layers_of(config.model.shape.layers) : std::vector<int64_t>{}};
}

Workload workload(const Config& config, int64_t micro_batch) {
  return {config.model.shape, micro_shape(config, micro_batch), config.train.precision, config.objective.kind};
}

std::vector<BlockFacts> facts_for(const Config& config, int64_t micro_batch) {
  const ModelShape& shape = config.model.shape;
  const Workload work = workload(config, micro_batch);
  auto facts = block_facts(work.shape, work.micro, work.precision);
  auto optimizer = make_optimizer(config.train);
  auto specs = list_blocks(shape);
  for (size_t b = 0; b < facts.size(); b++)
    for (const ParameterSpec& p : specs[b].parameters)
      for (const SlotSpec& slot : optimizer->slots({p.name, p.shape, p.decays})) {
        int64_t elements = slot.extent == SlotExtent::element ? p.size()
                           : slot.extent == SlotExtent::row   ? p.shape.front()
                                                              : p.shape.back();
        facts[b].optimizer_bytes += 4 * elements;
      }
  return facts;
}

// The peak needs no speeds: memory follows from the order alone.
int64_t peak_of(const Config& config, int64_t micro_batch) {
  Schedule step = training_step(facts_for(config, micro_batch), static_cast<int32_t>(config.train.batch / micro_batch));
  return memory_bound(step, Order(step)).bytes;
}

int64_t choose_micro_batch(const Config& config, int64_t room) {
  int64_t smallest = 1;
  for (int64_t micro = config.train.batch; micro >= 1; micro--) {
    if (config.train.batch % micro != 0) continue;
    smallest = micro;
    bool few_enough = micro * config.data.sequence <= kTokensEnough || micro == 1;
    if (few_enough && peak_of(config, micro) <= room) return micro;
  }
  return smallest;
}

void refuse_if_too_large(const Plan& plan, const Config& config) {
  if (plan.predicted_peak() <= plan.budget) return;
  std::string table;
  const nlohmann::json kinds = memory_by_kind(plan.predicted.at_peak, plan.process);
  for (const auto& [kind, bytes] : kinds.items())
    table += fmt::format("{}{} {}", table.empty() ? "" : ", ", kind, show(Bytes(bytes.get<int64_t>())));
  throw UserError({"", "memory.ram", fmt::format("at least {} ({})", show(plan.predicted_peak()), table), show(plan.budget),
                   config.train.micro_batch == 1 || plan.micro_batch == 1
                       ? "use a smaller model or data.sequence, train.optimizer=adafactor or lion, or more memory"
                       : "set train.micro_batch=1, use a smaller model or data.sequence, or more memory"});
}

void must_be_valid(const Schedule& schedule) {
  auto problems = check(schedule);
  MEGALITH_ASSERT(problems.empty(), "{}", problems.front().reason);
}

void lay_out(Plan& plan, const Config& config) {
  plan.blocks = facts_for(config, plan.micro_batch);
  plan.step = training_step(plan.blocks, plan.micros);
  plan.step_with_save = with_save(plan.step);
  must_be_valid(plan.step);
  must_be_valid(plan.step_with_save);
}

}  // namespace

Plan with_shape(Plan plan, const Config& config) {
  plan.micro_batch = config.train.batch / plan.micros;
  lay_out(plan, config);
  plan.predicted = simulate(plan.step, predict_costs(plan.step, plan.speeds));
  return plan;
}

Plan make_plan(const Config& config) {
  Plan plan;
  plan.threads = config.train.threads > 0 ? config.train.threads : usable_cores();
  plan.process = resident_memory();
  plan.budget = config.memory.ram ? *config.memory.ram : usable_memory();
  plan.micro_batch = config.train.micro_batch > 0 ? config.train.micro_batch
                                                  : choose_micro_batch(config, plan.budget.value - plan.process.value);
  plan.micros = static_cast<int32_t>(config.train.batch / plan.micro_batch);
  lay_out(plan, config);
  plan.speeds = calibrate(workload(config, plan.micro_batch), plan.threads, config.run.dir);
  // Again now that the matrix library has its buffers: what it keeps is the process's own, too.
  plan.process = std::max(plan.process, resident_memory());
  plan.predicted = simulate(plan.step, predict_costs(plan.step, plan.speeds));
  refuse_if_too_large(plan, config);
  return plan;
}

nlohmann::json memory_by_kind(const MemoryUse& use, Bytes process) {
  return {{"parameters", use[MemoryKind::parameters]},
          {"gradients", use[MemoryKind::gradients]},
          {"optimizer", use[MemoryKind::optimizer]},
          {"activations", use[MemoryKind::activations] + use[MemoryKind::saved] + use[MemoryKind::aside]},
          {"workspace", use[MemoryKind::workspace]},
          {"process", process.value}};
}

nlohmann::json to_json(const Plan& plan, const Config& config) {
  const ModelShape& s = config.model.shape;
  return {{"model",
           {{"arch", name(s.arch)},
            {"layers", s.layers},
            {"hidden", s.hidden},
            {"heads", s.heads},
            {"vocab", s.vocab},
            {"context", s.context},
            {"parameters", parameter_count(s)}}},
          {"tokens_per_step", config.train.batch * config.data.sequence},
          {"micro_batch", plan.micro_batch},
          {"micro_batches", plan.micros},
          {"threads", plan.threads},
          {"budget_bytes", plan.budget.value},
          {"predicted",
           {{"step_s", plan.predicted.seconds},
            {"peak_bytes", plan.predicted_peak().value},
            {"memory", memory_by_kind(plan.predicted.at_peak, plan.process)}}},
          {"machine", {{"cpu", processor_name()}, {"cores", plan.threads}}}};
}

}  // namespace megalith
