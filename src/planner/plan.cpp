#include "planner/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/error.h"
#include "memory/allocator.h"
#include "memory/machine.h"
#include "planner/budget.h"
#include "planner/calibration.h"
#include "planner/fitting.h"
#include "planner/links.h"
#include "planner/process.h"
#include "planner/refusal.h"
#include "planner/run_blocks.h"
#include "planner/size_check.h"
#include "schedule/passes/training_step.h"
#include "schedule/check/checker.h"
#include "schedule/passes/residency.h"
#include "schedule/passes/save.h"
#include "schedule/check/rank_checker.h"

namespace megalith {
namespace {

// A window or strategy within this factor of the fastest counts as equally fast.
constexpr double kAsGood = 1.01;
// Buffers of the matrix library up to this size are part of ProcessBound::rest.
constexpr int64_t kSmallBuffers = int64_t{2} << 20;

// Simulates the ranks of the given stages together. Returns one result per stage: that of its rank in the first column.
std::vector<Simulation> simulate_stages(const Plan& plan, const std::vector<Strategy>& stages) {
  std::vector<Schedule> steps;
  for (const Strategy& strategy : stages) steps.push_back(training_schedule(plan.blocks, plan.micros, strategy));
  std::vector<RankSchedule> ranks;
  std::vector<std::vector<Cost>> costs;
  for (size_t column = 0; column < plan.columns.size(); column++)
    for (const Schedule& step : steps) {
      const int32_t host = plan.columns[column].host[static_cast<size_t>(step.layout.stage())];
      const auto number = static_cast<int32_t>(column);
      ranks.push_back({.schedule = &step, .column = number, .experts = number, .host = host,
                       .copies = plan.columns[column].copies});
      costs.push_back(predict_costs(step, plan.speeds));
    }
  std::vector<Simulation> simulations = simulate_ranks(ranks, costs);
  simulations.resize(steps.size());
  return simulations;
}

void predict(Plan& plan) {
  plan.predicted_stages = simulate_stages(plan, plan.stages);
  plan.predicted = plan.predicted_stages[static_cast<size_t>(plan.stage)];
}

// Returns the first strategy that is about as fast as the fastest. Earlier strategies move and keep less. `seconds`
// returns the step time with a strategy.
Strategy choose_strategy(const std::vector<Strategy>& strategies, const std::function<double(const Strategy&)>& seconds) {
  if (strategies.size() == 1) return strategies.front();
  std::vector<double> found;
  for (const Strategy& strategy : strategies) found.push_back(seconds(strategy));
  const double best = *std::min_element(found.begin(), found.end());
  for (size_t i = 0; i < strategies.size(); i++)
    if (found[i] <= best * kAsGood) return strategies[i];
  return strategies.front();
}

// Bytes for tensors.
int64_t room_of(const Plan& plan) { return room_for_tensors(plan.budget, plan.process, plan.memory); }

void must_be_valid(const Schedule& schedule) {
  auto problems = check(schedule);
  MEGALITH_ASSERT(problems.empty(), "{}", problems.front().reason);
}

// Proves before the first step that the schedules of all ranks meet. Ranks of the data, context and tensor axes have the
// same schedule, so two columns of stages represent all of them.
void must_meet(const Plan& plan, Schedule (*write)(const std::vector<BlockFacts>&, int32_t, const Strategy&)) {
  if (plan.strategy.layout.sizes().ranks() == 1) return;
  std::vector<Schedule> stages;
  for (const Strategy& strategy : plan.stages) stages.push_back(write(plan.blocks, plan.micros, strategy));
  std::vector<RankSchedule> ranks;
  for (int32_t column = 0; column < std::min(2, plan.strategy.layout.sizes().replicas()); column++)
    for (const Schedule& stage : stages) ranks.push_back({&stage, column});
  const auto problems = check_ranks(ranks);
  MEGALITH_ASSERT(problems.empty(), "{}", problems.front().reason);
}

void write_schedules(Plan& plan, const PlanInput& input) {
  plan.blocks = facts_for(input, plan.micro_batch, plan.staging);
  plan.step = training_schedule(plan.blocks, plan.micros, plan.strategy);
  plan.step_with_save = with_save(plan.step);
  plan.evaluation = evaluation_schedule(plan.blocks, plan.micros, plan.strategy);
  plan.evaluation_of_one = evaluation_schedule(plan.blocks, 1, plan.strategy);
  plan.final_save = final_save_schedule(plan.blocks, plan.strategy);
  must_be_valid(plan.step);
  must_be_valid(plan.step_with_save);
  must_be_valid(plan.evaluation);
  must_be_valid(plan.evaluation_of_one);
  must_be_valid(plan.final_save);
  must_meet(plan, training_schedule);
  must_meet(plan, evaluation_schedule);
}

// Returns one strategy per stage, all with the same order of computing. Empty if a stage does not fit.
std::vector<Strategy> choose_for_stages(const Plan& plan, const PlanInput& input, int64_t room) {
  std::vector<Strategy> chosen;
  std::vector<std::vector<Strategy>> fitting;  // by stage
  const auto alone = [&](const Strategy& strategy) { return simulate_stages(plan, {strategy}).front().seconds; };
  bool by_block = false;
  for (int32_t pass = 0; pass < 2; pass++) {
    chosen.clear();
    fitting.clear();
    for (int32_t stage = 0; stage < input.layout.pipeline; stage++) {
      StrategyLimits limits = limits_of(input, plan.blocks, stage, room);
      limits.by_block = by_block;
      fitting.push_back(fitting_strategies(plan.blocks, plan.micros, limits));
      if (fitting.back().empty()) return {};
      chosen.push_back(choose_strategy(fitting.back(), alone));
    }
    const auto blockwise = std::ranges::count(chosen, ComputeOrder::by_block, &Strategy::order);
    if (blockwise == 0 || blockwise == std::ssize(chosen)) break;
    by_block = true;
  }
  // Choose again for each stage, now simulated with the others: a slower strategy costs nothing if the stage waits anyway.
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

bool fits(const Plan& plan, const std::vector<BlockFacts>& blocks, const Strategy& strategy) {
  return most_memory(blocks, plan.micros, strategy) <= room_of(plan) &&
         (plan.device_budget.value == 0 ||
          most_memory(blocks, plan.micros, strategy, Tier::device) <= room_on_device(plan.device_budget));
}

// Returns ample staging if the strategies leave room for it. (To free room, we could keep fewer blocks in memory, but that
// is faster only in simulation.)
Staging choose_staging(const Plan& plan, const PlanInput& input) {
  if (std::ranges::none_of(plan.stages, &Strategy::spills)) return Staging::scarce;
  const auto blocks = facts_for(input, plan.micro_batch, Staging::ample);
  const bool all = std::ranges::all_of(plan.stages, [&](const Strategy& stage) { return fits(plan, blocks, stage); });
  return all ? Staging::ample : Staging::scarce;
}

// Measures or looks up the speeds of the machine, except links. All ranks call it at the same time.
struct SpeedQuestion {
  const PlanInput& input;
  const Workload& work;
  Measuring measuring;
  const PlanPeers& peers;
};
void find_speeds(Plan& plan, Agreed& agreed, const SpeedQuestion& ask, const std::function<void()>& settle) {
  const MachineUse use{plan.threads, ask.input.disk, ask.input.memory.spill, ask.input.host_ranks};
  if (ask.measuring == Measuring::allowed) {
    if (ask.peers.leads_host) agreed.speeds = calibrate_machine(use);
    settle();  // the other ranks of the host are idle meanwhile
    agreed.speeds.flops = calibrate_products(ask.work, agreed.speeds, /*together=*/static_cast<bool>(ask.peers.agree));
  } else {
    const auto known = known_speeds(ask.work, use);
    plan.measured = known.has_value();
    agreed.speeds = known.value_or(typical_speeds(plan.threads));
  }
  if (const std::string warning = warning_about_speeds(ask.work, use); plan.measured && !warning.empty())
    plan.warnings.push_back(warning);
}

// The same for links. `known`: what rank 0 had measured before.
Links find_links(Plan& plan, const LinkPlace& place, const Links& known, Measuring measuring, const PlanPeers& peers) {
  plan.links_measured =
      place.layout.ranks() == 1 || std::ranges::any_of(known, [](const LinkSpeed& link) { return link.bytes_per_s > 0; });
  if (plan.links_measured) return known;
  if (measuring == Measuring::forbidden || !peers.try_links) return typical_links();
  plan.links_measured = true;
  const Links found = measured_links(place, plan.threads, peers.try_links);
  release_cached_memory();
  reset_memory_peak();
  return found;
}

Bytes rank_budget(const PlanInput& input) { return Bytes(host_budget(input.memory).value / input.host_ranks); }

// Returns a plan in which nothing is chosen yet.
Plan begun_plan(const PlanInput& input) {
  MEGALITH_ASSERT(input.threads > 0 && !input.shapes.empty());
  check_plan_size(input, rank_budget(input).value);
  Plan plan;
  plan.stage = input.stage;
  plan.host_ranks = input.host_ranks;
  plan.device_budget = device_of(input.memory);
  plan.memory = input.memory;
  plan.threads = input.threads;
  return plan;
}

// Chooses the micro-batch of a plan whose budget and process are known. Throws DoesNotFit if no micro-batch fits.
void settle_micro_batch(Plan& plan, const PlanInput& input) {
  plan.micro_batch = input.micro_batch > 0 ? input.micro_batch : choose_micro_batch(input, room_of(plan));
  plan.micros = input.micros_of(plan.micro_batch);
  plan.blocks = facts_for(input, plan.micro_batch);
  if (!fits_tightly(input, plan.micro_batch, room_of(plan))) refuse(plan, input);
}

}  // namespace

Plan with_shape(Plan plan, const PlanInput& input, const StepShape& shape) {
  const PlanInput shaped = input.for_shape(shape);
  plan.micro_batch = shaped.rank_batch() / plan.micros;
  write_schedules(plan, shaped);
  predict(plan);
  return plan;
}

int32_t window_by_measurement(const Plan& plan, const Plan& ran, std::span<const Span> measured) {
  // Measured and predicted seconds of the ops of each lane.
  std::array<double, kLanes> took{}, predicted{};
  const std::vector<Cost> costs = predict_costs(ran.step, ran.speeds);
  for (size_t op = 0; op < costs.size(); op++) {
    const auto lane = static_cast<size_t>(ran.step.ops[op].lane);
    took[lane] += measured[op].end - measured[op].start;
    predicted[lane] += costs[op].seconds;
  }
  std::vector<std::pair<int32_t, double>> seconds;  // by window
  Strategy strategy = plan.strategy;
  for (int32_t window : windows_to_try({}, strategy.layout.device, plan.blocks.size())) {
    strategy.window = window;
    if (strategy.window != plan.strategy.window && !fits(plan, plan.blocks, strategy)) continue;
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

Plan with_window(Plan plan, const PlanInput& input, int32_t window) {
  plan.strategy.window = plan.stages[static_cast<size_t>(plan.stage)].window = window;
  write_schedules(plan, input);
  predict(plan);
  return plan;
}

void check_fits(const PlanInput& input) {
  Plan plan = begun_plan(input);
  plan.process = input.process;
  plan.budget = rank_budget(input);
  settle_micro_batch(plan, input);
}

Plan make_plan(const PlanInput& input, Measuring measuring, const PlanPeers& peers) {
  Plan plan = begun_plan(input);
  start_matrix_library();
  plan.columns = columns_of(input.layout.ranks(), input.layout.pipeline, peers.host_of);
  const LinkPlace place{input.layout, peers.hosts};
  Agreed agreed{.speeds = {}, .process = input.process, .budget = rank_budget(input)};
  agreed.speeds.links = known_links(place, plan.threads, measuring == Measuring::allowed).value_or(Links{});
  const auto settle = [&] {
    if (peers.agree) peers.agree(agreed);
    plan.speeds = agreed.speeds;
    plan.speeds.device_bandwidth = static_cast<double>(input.memory.device_bandwidth);
    plan.process = agreed.process;
    plan.budget = agreed.budget;
  };
  settle();
  const Links links = agreed.speeds.links;
  settle_micro_batch(plan, input);
  const Workload work = workload(input, plan.micro_batch);
  find_speeds(plan, agreed, {input, work, measuring, peers}, settle);
  // The matrix library may keep more buffers than expected: add the difference.
  const Bytes expected = std::max(Bytes(kSmallBuffers), product_buffers(input));
  agreed.process += std::max(Bytes(0), library_buffers(work, plan.threads) - expected);
  agreed.speeds.links = find_links(plan, place, links, measuring, peers);
  settle();
  plan.stages = choose_for_stages(plan, input, room_of(plan));
  if (plan.stages.empty()) refuse(plan, input);
  plan.strategy = plan.stages[static_cast<size_t>(plan.stage)];
  plan.staging = choose_staging(plan, input);
  write_schedules(plan, input);
  predict(plan);
  if (const std::string how = describe(plan.strategy); !how.empty()) {
    const std::string device = input.memory.device ? fmt::format(" and the device's {}", show(plan.device_budget)) : "";
    plan.adapted.push_back(fmt::format("to stay within {}{}: {}", show(plan.budget), device, how));
  }
  return plan;
}

}  // namespace megalith
