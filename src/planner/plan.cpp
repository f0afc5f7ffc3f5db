#include "planner/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/error.h"
#include "engine/block_store.h"
#include "memory/machine.h"
#include "model/facts.h"
#include "optim/optimizer.h"
#include "planner/calibration.h"
#include "schedule/base_pass.h"
#include "schedule/checker.h"
#include "schedule/save_pass.h"
#include "schedule/residency_pass.h"
#include "schedule/step_json.h"
#include "schedule/together.h"

namespace megalith {
namespace {

// Beyond this many tokens at once matrix products get no faster, but activations grow.
constexpr int64_t kTokensEnough = 4096;
// Below this many products are slow, and computing layers again costs less than smaller micro-batches.
constexpr int64_t kTokensFew = 512;
// What no schedule counts: token ids, masks and tables of positions, small blocks of the system's allocator, stacks.
constexpr int64_t kUncounted = int64_t{24} << 20;
// The same on a device: masks and tables of positions.
constexpr int64_t kUncountedOnDevice = int64_t{4} << 20;
// Of tensors: alignment and gaps between parameters.
constexpr double kCounted = 0.985;
// A window is larger than need be when a smaller one costs this little.
constexpr double kAsGood = 1.01;

// Sequences a step that a rank takes.
int64_t rank_batch(const Config& config) { return config.train.batch / std::max<int64_t>(1, config.parallel.data); }

MicroBatchShape micro_shape(const Config& config, int64_t sequences) {
  double targets = config.objective.kind == Objective::masked ? config.objective.mask_fraction : 1.0;
  // The steps that drop least are the largest.
  const int64_t kept = config.token_dropping.on() ? static_cast<int64_t>(config.token_dropping.pacing.to) : 0;
  const bool drops = kept < config.data.sequence && kept > 0;
  return {.sequences = sequences,
          .length = config.data.sequence,
          .target_fraction = targets,
          .micros = rank_batch(config) / sequences,
          .kept = drops ? kept : 0,
          .dropping_layers = drops ? config.token_dropping.layers_of(config.model.shape.layers) : std::vector<int64_t>{}};
}

Workload workload(const Config& config, int64_t micro_batch) {
  return {config.model.shape, micro_shape(config, micro_batch), config.train.precision, config.objective.kind};
}

// Optimizer state of one number an element, and what the engine's streaming of a block takes: see engine/model_spill.cpp.
void describe_streaming(BlockFacts& f, const BlockSpec& spec, int64_t slots, Packing packing, bool narrow) {
  // The optimizer's, then the gradient; 16 bits: and the master. By kind and part: one stream takes all.
  std::vector<std::vector<StoredArray>> staged(static_cast<size_t>(slots) + (narrow ? 2 : 1));
  for (const FlatPart& part : spec.parts) {
    const StateLayout layout(spec, packing, part.range);
    const StoredArray slot = stored_slot(layout), values{part.range.size()};
    for (size_t kind = 0; kind < staged.size(); kind++)
      staged[kind].push_back(kind < static_cast<size_t>(slots) ? slot : values);
    f.values_disk_bytes += values.disk_bytes();
    f.optimizer_bytes += slots * layout.slot_bytes();
    if (part.spread) f.expert_optimizer_bytes += slots * layout.slot_bytes();
    f.optimizer_disk_bytes += slots * slot.disk_bytes();
  }
  f.stream_bytes = BlockStore::staging_bytes(staged);
  if (spec.parts.size() == 1) return;
  for (std::vector<StoredArray>& kind : staged) kind.erase(kind.begin());  // experts alone
  f.call_bytes = BlockStore::staging_bytes(staged);
}

// State of another form, of an optimizer that looks at whole parameters: it stays in memory, and so does a block while
// it is updated.
void describe_whole(BlockFacts& f, const BlockSpec& spec, const Optimizer& optimizer, bool narrow) {
  f.optimizer_streams = false;
  f.stream_bytes = (narrow ? 8 : 4) * spec.flat_size;
  f.values_disk_bytes = StoredArray{spec.flat_size}.disk_bytes();
  for (const ParameterSpec& p : spec.parameters)
    for (const SlotSpec& slot : optimizer.slots({p.name, p.shape, p.decays}))
      f.optimizer_bytes += 4 * (slot.extent == SlotExtent::element ? p.size()
                                : slot.extent == SlotExtent::row   ? p.shape.front()
                                                                   : p.shape.back());
}

std::vector<BlockFacts> facts_for(const Config& config, int64_t micro_batch) {
  const Workload work = workload(config, micro_batch);
  // Ranks that share blocks have equal parts, but for a row or a token here and there.
  const ParallelSettings& p = config.parallel;
  const Split split{.tensor = p.tensor, .context = p.context, .form = p.context_form, .expert = p.expert};
  auto facts = block_facts(work.shape, work.micro, work.precision, config.train.activations, split);
  const auto optimizer = make_optimizer(config.train);
  const auto specs = list_blocks(config.model.shape, split);
  const auto slots = static_cast<int64_t>(optimizer->slots({"any", {1, 1}, true}).size());
  const bool narrow = work.precision != Precision::fp32;
  for (size_t b = 0; b < facts.size(); b++) {
    if (optimizer->statistics_rounds() > 0) describe_whole(facts[b], specs[b], *optimizer, narrow);
    else describe_streaming(facts[b], specs[b], slots, config.train.optimizer_state, narrow);
    if (b > 0) facts[b].parking_bytes = BlockStore::staging_bytes({{{(facts[b - 1].output_bytes + 3) / 4}}});
  }
  return facts;
}

int32_t micros_of(const Config& config, int64_t micro_batch) {
  return static_cast<int32_t>(rank_batch(config) / micro_batch);
}

PipelineOrder pipeline_order(const std::string& name) {
  if (name == "gpipe") return PipelineOrder::gpipe;
  if (name == "interleaved") return PipelineOrder::interleaved;
  return name == "zero_bubble" ? PipelineOrder::zero_bubble : PipelineOrder::one_f_one_b;
}

int32_t stages_of(const Config& config) { return static_cast<int32_t>(config.parallel.pipeline); }

Bytes device_of(const Config& config) { return config.memory.device.value_or(Bytes(0)); }

// Bytes for tensors in the device's memory.
int64_t room_on_device(const Config& config) {
  return static_cast<int64_t>(static_cast<double>(device_of(config).value - kUncountedOnDevice) * kCounted);
}

Bytes host_budget(const Config& config) {
  if (config.memory.ram) return *config.memory.ram;
  return usable_memory() - device_of(config);  // a simulated device has its memory from the same machine
}

// What the ranks of a stage may choose from.
StrategyLimits limits_of(const Config& config, const std::vector<BlockFacts>& blocks, int32_t stage, int64_t room) {
  const ParallelSettings& p = config.parallel;
  const int64_t data = std::max<int64_t>(1, p.data);
  StrategyLimits limits{.memory = config.memory, .room = room, .pipeline = pipeline_order(p.schedule)};
  limits.division.ranks = static_cast<int32_t>(data * p.pipeline * p.context * p.tensor);
  limits.division.tensor = static_cast<int32_t>(p.tensor);
  limits.division.device = config.memory.device.has_value();
  if (limits.division.device) limits.device = room_on_device(config);
  limits.division.sharding = {static_cast<int32_t>(data * p.context), static_cast<int32_t>(p.zero),
                              static_cast<int32_t>(p.expert)};
  const int32_t pieces = limits.pipeline == PipelineOrder::interleaved ? static_cast<int32_t>(p.interleave) : 1;
  if (p.pipeline > 1) limits.division.stages = {balanced_stages(blocks, stages_of(config), pieces), stage};
  return limits;
}

// Whether the step fits with that micro-batch, by a strategy that is always the same: memory follows from the order
// alone, no speeds are needed.
bool fits_plainly(const Config& config, int64_t micro_batch, int64_t room) {
  const auto blocks = facts_for(config, micro_batch);
  for (int32_t stage = 0; stage < stages_of(config); stage++) {
    StrategyLimits limits = limits_of(config, blocks, stage, room);
    Strategy plain = limits.plain();
    limits.memory = {.recompute = config.memory.recompute, .recompute_every = config.memory.recompute_every};
    if (config.memory.recompute != Recompute::automatic) plain.keep = tightest_strategy(blocks, micros_of(config, micro_batch), limits).keep;
    if (most_memory(blocks, micros_of(config, micro_batch), plain) > room) return false;
    if (config.memory.device && most_memory(blocks, micros_of(config, micro_batch), plain, Tier::device) > room_on_device(config))
      return false;
  }
  return true;
}

// Of the stage that needs most.
int64_t least_memory(const Config& config, int64_t micro_batch, Tier tier = Tier::host) {
  const auto blocks = facts_for(config, micro_batch);
  const int32_t micros = micros_of(config, micro_batch);
  int64_t most = 0;
  for (int32_t stage = 0; stage < stages_of(config); stage++)
    most = std::max(most, most_memory(blocks, micros, tightest_strategy(blocks, micros, limits_of(config, blocks, stage, 0)), tier));
  return most;
}

bool fits_tightly(const Config& config, int64_t micro_batch, int64_t room) {
  return least_memory(config, micro_batch) <= room &&
         (!config.memory.device || least_memory(config, micro_batch, Tier::device) <= room_on_device(config));
}

// The largest that needs neither recomputation nor the disk, unless it has so few tokens that products get slow; then
// the largest that fits with all of both.
int64_t choose_micro_batch(const Config& config, int64_t room) {
  std::vector<int64_t> divisors;  // large to small
  const int64_t batch = rank_batch(config);
  // A pipeline wants several micro-batches a stage to be busy.
  const int64_t largest = config.parallel.pipeline > 1 ? std::max<int64_t>(1, batch / (4 * config.parallel.pipeline)) : batch;
  for (int64_t micro = largest; micro >= 1; micro--)
    if (batch % micro == 0 && (micro * config.data.sequence <= kTokensEnough || micro == 1))
      divisors.push_back(micro);
  for (int64_t micro : divisors)
    if (micro * config.data.sequence >= kTokensFew && fits_plainly(config, micro, room)) return micro;
  for (int64_t micro : divisors)
    if (fits_tightly(config, micro, room)) return micro;
  return divisors.back();
}

int64_t room_for_tensors(Bytes budget, Bytes process) {
  return static_cast<int64_t>(static_cast<double>(budget.value - process.value - kUncounted) * kCounted);
}

// Single settings that would make it fit, with what the run would then take.
std::vector<Way> ways_to_fit(const Config& config, Bytes process) {
  std::vector<Way> ways;
  const auto try_with = [&](const std::string& say, const std::function<void(Config&)>& change) {
    Config changed = config;
    change(changed);
    const int64_t micro = changed.train.micro_batch > 0 ? changed.train.micro_batch : 1;
    const int64_t bytes = least_memory(changed, micro);
    const Bytes all = process_with(bytes, process);
    if (config.memory.device && least_memory(changed, micro, Tier::device) > room_on_device(config)) return;
    if (all <= host_budget(config)) ways.push_back({say, all});
  };
  if (config.train.micro_batch > 1) try_with("train.micro_batch=auto", [](Config& c) { c.train.micro_batch = 0; });
  if (config.memory.recompute != Recompute::automatic)
    try_with("memory.recompute=auto", [](Config& c) { c.memory.recompute = Recompute::automatic; });
  if (config.memory.spill.empty() && !config.memory.device) try_with("memory.spill=DIRECTORY", [](Config& c) { c.memory.spill = std::string("."); });
  if (config.memory.window > 1) try_with("memory.window=1", [](Config& c) { c.memory.window = 1; });
  if (config.train.optimizer_state == Packing::fp32 && config.train.optimizer != OptimizerKind::adafactor)
    try_with("train.optimizer_state=int8", [](Config& c) { c.train.optimizer_state = Packing::int8; });
  if (config.train.activations == Packing::fp32 && config.train.precision == Precision::fp32 &&
      config.memory.recompute != Recompute::selective)
    try_with("memory.activations=int8", [](Config& c) { c.train.activations = Packing::int8; });
  if (config.train.optimizer == OptimizerKind::adamw)
    try_with("train.optimizer=adafactor", [](Config& c) { c.train.optimizer = OptimizerKind::adafactor; });
  return ways;
}

std::string table_of(const MemoryUse& use, Bytes process) {
  std::string table;
  const nlohmann::json kinds = memory_by_kind(use, process);
  for (const auto& [kind, bytes] : kinds.items())
    if (bytes.get<int64_t>() > 0)
      table += fmt::format("{}{} {}", table.empty() ? "" : ", ", kind, show(Bytes(bytes.get<int64_t>())));
  return table;
}

[[noreturn]] void refuse(const Plan& plan, const Config& config) {
  Shortfall why{plan.micro_batch, plan.budget, plan.process, {}, {}, {}, {}, {}, ways_to_fit(config, plan.process)};
  const auto blocks = facts_for(config, plan.micro_batch);
  why.tightest = tightest_strategy(blocks, plan.micros, limits_of(config, blocks, plan.stage, 0));
  why.step = training_schedule(blocks, plan.micros, why.tightest);
  why.least = process_with(most_memory(blocks, plan.micros, why.tightest), plan.process);
  why.device_budget = device_of(config);
  const int64_t on_device = config.memory.device ? most_memory(blocks, plan.micros, why.tightest, Tier::device) : 0;
  if (config.memory.device)
    why.device_least = device_with(on_device);
  const bool device_short = why.device_least > why.device_budget;
  const std::string how = describe(why.tightest);
  std::vector<std::string> ways;
  for (const Way& way : why.ways) ways.push_back(fmt::format("{} ({})", way.setting, show(way.bytes)));
  const MemoryUse use = memory_in_order(why.step, device_short ? Tier::device : Tier::host);
  UserError::Parts what{"", device_short ? "memory.device" : "memory.ram",
                        fmt::format("at least {}{} ({})", show(device_short ? why.device_least : why.least),
                                    how.empty() ? "" : " with " + how, table_of(use, device_short ? Bytes(0) : plan.process)),
                        show(device_short ? why.device_budget : plan.budget),
                        ways.empty() ? "use a smaller model or data.sequence, or more memory"
                                     : fmt::format("what would make it fit: {}", fmt::join(ways, "; "))};
  throw DoesNotFit(std::move(what), std::move(why));
}

// One rank of each stage, side by side. Those of the other axes do the same at the same time.
std::vector<Simulation> simulate_stages(const Plan& plan, const std::vector<Strategy>& stages) {
  std::vector<Schedule> steps;
  std::vector<std::vector<Cost>> costs;
  for (const Strategy& strategy : stages) {
    steps.push_back(training_schedule(plan.blocks, plan.micros, strategy));
    costs.push_back(predict_costs(steps.back(), plan.speeds));
  }
  std::vector<RankSchedule> ranks;
  for (const Schedule& step : steps) ranks.push_back({&step});
  return simulate_together(ranks, costs);
}

void predict(Plan& plan) {
  plan.predicted_stages = simulate_stages(plan, plan.stages);
  plan.predicted = plan.predicted_stages[static_cast<size_t>(plan.stage)];
}

// The fastest of those that fit; of those about as fast, the first (which moves and keeps least). `seconds`: of the step
// by such a strategy.
Strategy choose_strategy(const std::vector<Strategy>& strategies, const std::function<double(const Strategy&)>& seconds) {
  if (strategies.size() == 1) return strategies.front();
  std::vector<double> found;
  for (const Strategy& strategy : strategies) found.push_back(seconds(strategy));
  const double best = *std::min_element(found.begin(), found.end());
  for (size_t i = 0; i < strategies.size(); i++)
    if (found[i] <= best * kAsGood) return strategies[i];
  return strategies.front();
}

void must_be_valid(const Schedule& schedule) {
  auto problems = check(schedule);
  MEGALITH_ASSERT(problems.empty(), "{}", problems.front().reason);
}

// That the schedules of all ranks meet is proved before the first step. Ranks of the data, context and tensor axes have
// the same schedule, so that two columns of stages stand for all.
void must_meet(const Plan& plan, Schedule (*write)(const std::vector<BlockFacts>&, int32_t, const Strategy&)) {
  if (plan.strategy.division.ranks == 1) return;
  std::vector<Schedule> stages;
  for (const Strategy& strategy : plan.stages) stages.push_back(write(plan.blocks, plan.micros, strategy));
  std::vector<RankSchedule> ranks;
  for (int32_t column = 0; column < std::min(2, plan.strategy.division.sharding.replicas); column++)
    for (const Schedule& stage : stages) ranks.push_back({&stage, column});
  const auto problems = check_together(ranks);
  MEGALITH_ASSERT(problems.empty(), "{}", problems.front().reason);
}

void lay_out(Plan& plan, const Config& config) {
  plan.blocks = facts_for(config, plan.micro_batch);
  plan.step = training_schedule(plan.blocks, plan.micros, plan.strategy);
  plan.step_with_save = with_save(plan.step);
  plan.evaluation = evaluation_schedule(plan.blocks, plan.micros, plan.strategy);
  plan.evaluation_of_one = evaluation_schedule(plan.blocks, 1, plan.strategy);
  plan.final_save = final_save_schedule(plan.blocks, plan.strategy);
  for (const Schedule* schedule : {&plan.step, &plan.step_with_save, &plan.evaluation, &plan.evaluation_of_one, &plan.final_save})
    must_be_valid(*schedule);
  must_meet(plan, training_schedule);
  must_meet(plan, evaluation_schedule);
}

// One strategy a stage, all of them in one order of computing; empty where some stage does not fit.
std::vector<Strategy> choose_for_stages(Plan& plan, const Config& config, int64_t room) {
  std::vector<Strategy> chosen;
  std::vector<std::vector<Strategy>> fitting;  // by stage
  const auto alone = [&](const Strategy& strategy) { return simulate_stages(plan, {strategy}).front().seconds; };
  bool by_block = false;
  for (int32_t pass = 0; pass < 2; pass++) {
    chosen.clear();
    fitting.clear();
    for (int32_t stage = 0; stage < stages_of(config); stage++) {
      StrategyLimits limits = limits_of(config, plan.blocks, stage, room);
      limits.by_block = by_block;
      fitting.push_back(fitting_strategies(plan.blocks, plan.micros, limits));
      if (fitting.back().empty()) return {};
      chosen.push_back(choose_strategy(fitting.back(), alone));
    }
    const auto blockwise = std::count_if(chosen.begin(), chosen.end(), [](const Strategy& s) { return s.order == ComputeOrder::by_block; });
    if (blockwise == 0 || blockwise == std::ssize(chosen)) break;
    by_block = true;
  }
  // Each stage once more, with the others beside it: what is slower alone may be hidden where a stage waits anyway.
  for (size_t stage = 0; chosen.size() > 1 && stage < chosen.size(); stage++) {
    std::erase_if(fitting[stage], [&](const Strategy& s) { return s.order != chosen[stage].order; });
    chosen[stage] = choose_strategy(fitting[stage], [&](const Strategy& strategy) {
      std::vector<Strategy> all = chosen;
      all[stage] = strategy;
      return simulate_stages(plan, all).front().seconds;
    });
  }
  return chosen;
}

}  // namespace

Plan with_shape(Plan plan, const Config& config) {
  plan.micro_batch = rank_batch(config) / plan.micros;
  lay_out(plan, config);
  predict(plan);
  return plan;
}

int32_t window_by_measurement(const Plan& plan, std::span<const Span> measured) {
  // How much longer than predicted the ops of each lane took.
  std::array<double, kLanes> took{}, predicted{};
  const std::vector<Cost> costs = predict_costs(plan.step, plan.speeds);
  for (size_t op = 0; op < costs.size(); op++) {
    const auto lane = static_cast<size_t>(plan.step.ops[op].lane);
    took[lane] += measured[op].end - measured[op].start;
    predicted[lane] += costs[op].seconds;
  }
  const auto fits = [&](const Strategy& strategy) {
    const auto on_device = static_cast<int64_t>(static_cast<double>(plan.device_budget.value - kUncountedOnDevice) * kCounted);
    return most_memory(plan.blocks, plan.micros, strategy) <= room_for_tensors(plan.budget, plan.process) &&
           (plan.device_budget.value == 0 || most_memory(plan.blocks, plan.micros, strategy, Tier::device) <= on_device);
  };
  std::vector<std::pair<int32_t, double>> seconds;  // by window
  Strategy strategy = plan.strategy;
  for (int32_t window : windows_to_try({}, strategy.division.device, plan.blocks.size())) {
    strategy.window = window;
    if (strategy.window != plan.strategy.window && !fits(strategy)) continue;
    const Schedule step = training_schedule(plan.blocks, plan.micros, strategy);
    std::vector<Cost> scaled = predict_costs(step, plan.speeds);
    for (size_t op = 0; op < scaled.size(); op++) {
      const auto lane = static_cast<size_t>(step.ops[op].lane);
      if (predicted[lane] > 0) scaled[op].seconds *= took[lane] / predicted[lane];
    }
    seconds.emplace_back(strategy.window, simulate(step, scaled).seconds);
  }
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [window, s] : seconds) best = std::min(best, s);
  for (const auto& [window, s] : seconds)
    if (s <= best * kAsGood) return window;
  return plan.strategy.window;
}

Plan with_window(Plan plan, const Config& config, int32_t window) {
  plan.strategy.window = plan.stages[static_cast<size_t>(plan.stage)].window = window;
  lay_out(plan, config);
  predict(plan);
  return plan;
}

Bytes process_with(int64_t tensors, Bytes process) {
  return Bytes(static_cast<int64_t>(static_cast<double>(tensors) / kCounted) + kUncounted) + process;
}

Bytes device_with(int64_t tensors) {
  return Bytes(static_cast<int64_t>(static_cast<double>(tensors) / kCounted) + kUncountedOnDevice);
}

Plan make_plan(const Config& config, Measuring measuring, const Seat& seat) {
  Plan plan;
  plan.stage = seat.stage;
  plan.device_budget = device_of(config);
  plan.threads = config.train.threads > 0 ? config.train.threads : std::max<int64_t>(1, usable_cores() / seat.host_ranks);
  start_matrix_library();
  Agreed agreed{.speeds = {}, .process = resident_memory(), .budget = host_budget(config)};
  agreed.budget = Bytes(agreed.budget.value / seat.host_ranks);
  const Bytes started = agreed.process;
  const auto agree = [&] {
    if (seat.agree) seat.agree(agreed);
    plan.speeds = agreed.speeds;
    plan.speeds.device_bandwidth = static_cast<double>(config.memory.device_bandwidth);
    plan.process = agreed.process;
    plan.budget = agreed.budget;
  };
  agree();
  plan.micro_batch = config.train.micro_batch > 0
                         ? config.train.micro_batch
                         : choose_micro_batch(config, room_for_tensors(plan.budget, plan.process));
  plan.micros = micros_of(config, plan.micro_batch);
  plan.blocks = facts_for(config, plan.micro_batch);
  if (!fits_tightly(config, plan.micro_batch, room_for_tensors(plan.budget, plan.process))) refuse(plan, config);
  const Workload work = workload(config, plan.micro_batch);
  if (measuring == Measuring::allowed) {
    agreed.speeds = calibrate(work, plan.threads, config.run.dir, config.memory.spill);
  } else {
    const auto known = known_speeds(work, plan.threads, config.run.dir, config.memory.spill);
    plan.measured = known.has_value();
    agreed.speeds = known.value_or(typical_speeds(plan.threads));
  }
  // With the buffers that the matrix library keeps, whether it has them by now or will have them: they are the process's
  // own, too.
  agreed.process = std::max(started + library_buffers(work, plan.threads), resident_memory());
  agree();
  plan.stages = choose_for_stages(plan, config, room_for_tensors(plan.budget, plan.process));
  if (plan.stages.empty()) refuse(plan, config);
  plan.strategy = plan.stages[static_cast<size_t>(plan.stage)];
  lay_out(plan, config);
  predict(plan);
  if (const std::string how = describe(plan.strategy); !how.empty())
    plan.adapted.push_back(fmt::format("to stay within {}{}: {}", show(plan.budget),
                                       config.memory.device ? fmt::format(" and the device's {}", show(plan.device_budget)) : "", how));
  return plan;
}

nlohmann::json memory_by_kind(const MemoryUse& use, Bytes process) {
  return {{"parameters", use[MemoryKind::parameters]},
          {"gradients", use[MemoryKind::gradients]},
          {"optimizer", use[MemoryKind::optimizer]},
          {"activations", use[MemoryKind::activations] + use[MemoryKind::saved] + use[MemoryKind::aside]},
          {"workspace", use[MemoryKind::workspace]},
          {"staging", use[MemoryKind::staging]},
          {"process", process.value}};
}

// [{compute_s, waits_for_ranks_s, peak_bytes}], one entry a stage of the pipeline.
nlohmann::json stages_json(const Plan& plan) {
  nlohmann::json list = nlohmann::json::array();
  for (const Simulation& stage : plan.predicted_stages)
    list.push_back({{"compute_s", stage.busy[static_cast<size_t>(Lane::compute)]},
                    {"waits_for_ranks_s", stage.waited_for_ranks},
                    {"peak_bytes", (Bytes(stage.peak_bytes) + plan.process).value}});
  return list;
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
          {"device_budget_bytes", plan.device_budget.value},
          {"strategy",
           {{"summary", describe(plan.strategy)},
            {"window", plan.strategy.moves() ? plan.strategy.window : 0},
            {"ahead", plan.strategy.ahead},
            {"layers_recomputed", std::count_if(plan.strategy.keep.begin(), plan.strategy.keep.end(),
                                                [](Keep keep) { return keep != Keep::all; })},
            {"blocks_away", std::count(plan.strategy.placement.begin(), plan.strategy.placement.end(), Placement::away)},
            {"blocks_with_moments_away",
             std::count(plan.strategy.placement.begin(), plan.strategy.placement.end(), Placement::moments_away)},
            {"layers_with_inputs_away", std::count(plan.strategy.parks.begin(), plan.strategy.parks.end(), true)},
            {"disk_read_bytes", disk_traffic(plan.step).read},
            {"disk_written_bytes", disk_traffic(plan.step).written}}},
          {"predicted",
           {{"step_s", plan.predicted.seconds},
            {"peak_bytes", plan.predicted_peak().value},
            {"memory", memory_by_kind(plan.predicted.at_peak, plan.process)},
            {"device_peak_bytes", plan.predicted.on_device.total()},
            {"device_memory", memory_by_kind(plan.predicted.on_device, Bytes(0))},
            {"stalls", stalls_json(plan.predicted.stalls)},
            {"waits_for_ranks_s", plan.predicted.waited_for_ranks},
            {"stages", stages_json(plan)},
            {"busy_s", busy_json(plan.step, plan.predicted.busy)}}},
          {"limits", limits_json(plan.step, plan.speeds)},
          {"disk_bytes_by_lane", traffic_json(plan.step)},
          {"machine", {{"cpu", processor_name()}, {"cores", plan.threads}}}};
}

}  // namespace megalith
