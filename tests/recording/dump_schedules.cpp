// Schedules of many layouts: their ops, costs, memory and the results of the checkers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>

#include "planner/fitting.h"
#include "planner/input.h"
#include "planner/run_blocks.h"
#include "planner/strategy.h"
#include "recording/dump.h"
#include "schedule/predict/roofline.h"
#include "schedule/check/happens_before.h"
#include "schedule/random_layouts.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/op_type.h"
#include "schedule/predict/simulator.h"
#include "schedule/toy_speeds.h"

namespace megalith::recording {
namespace {

using Ranks = std::span<const RankSchedule>;
// Prints one schedule, or the schedules of all ranks of a layout.
struct View {
  std::function<void(const Schedule&)> one;
  std::function<void(Ranks)> together;
};

constexpr const char* kPlacements[] = {"memory", "moments", "disk"};
constexpr const char* kKeeps[] = {"all", "attention", "input", "none"};

MachineSpeeds toy_speeds() {
  MachineSpeeds speeds = kToySpeeds;
  speeds.spill_kernel_s = 3e-10;
  speeds.commit_s = 1e-3;
  speeds.load = {1e-4, 3e7};
  speeds.offload_gradient = {2e-4, 2e7};
  speeds.load_updated = {3e-4, 1.5e7};
  speeds.load_updated_scarce = {4e-4, 1e7};
  return speeds;
}

// Op names are in brackets, so that compare.py replaces only these.
std::string op_name(OpKind kind) {
  std::string text = fmt::format("[{}]", name(kind));
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

template <class Values>
std::string words(const Values& values, const char* const* names) {
  std::string text;
  for (const auto value : values) text += std::string(" ") + names[static_cast<size_t>(value)];
  return text;
}

std::string digits(const std::vector<bool>& flags) {
  std::string text;
  for (const bool flag : flags) text += flag ? '1' : '0';
  return text;
}

void print_ops(const Schedule& s) {
  fmt::print("{} blocks, {} micro-batches, training {}, puts off {}\n", s.blocks.size(), s.micros, s.training,
             s.defers_weight_gradients);
  fmt::print("placement{}; keep{}; parks {}; stages {}\n", words(s.placement, kPlacements), words(s.keep, kKeeps),
             digits(s.offloads), s.layout.stages.of);
  const RankLayout& d = s.layout;
  fmt::print("ranks {}, tensor {}, replicas {}, zero {}, expert {}, stage {}, device {}\n", d.sizes().ranks(),
             d.sizes().tensor, d.sizes().replicas(), d.sizes().zero, d.sizes().expert, d.stage(), d.device);
  for (size_t i = 0; i < s.ops.size(); i++) {
    const Op& op = s.ops[i];
    fmt::print("{} {} b{} m{} {} <{}>\n", i, op_name(op.kind), op.block, op.micro, name(op.lane), fmt::join(op.after, ","));
  }
}

void print_simulation(const Simulation& s) {
  fmt::print("step {:a}, waits for ranks {:a}, peak {} in {}, busy", s.seconds, s.waited_for_ranks, s.peak_bytes, s.peak_op);
  for (double seconds : s.busy) fmt::print(" {:a}", seconds);
  fmt::print(", device {}\n", s.on_device.total());
  for (const Stall& stall : s.stalls)
    fmt::print("stall {} {} {:a}\n", name(stall.lane), op_name(stall.waited_for), stall.seconds);
}

void print_costs(const Schedule& s) {
  const std::vector<Cost> costs = predict_costs(s, toy_speeds());
  for (size_t i = 0; i < costs.size(); i++)
    fmt::print("{} {:a} {:a} {:a} {:a}\n", i, costs[i].seconds, costs[i].use[0], costs[i].use[1], costs[i].use[2]);
  print_simulation(simulate(s, costs));
  if (!s.training || s.micros == 0) return;
  const auto useful = useful_seconds(s, toy_speeds());
  for (size_t r = 0; r < kResources; r++)
    if (static_cast<Resource>(r) != Resource::network || useful[r] > 0) fmt::print("useful {:a}\n", useful[r]);
}

void print_costs_together(Ranks ranks) {
  std::vector<std::vector<Cost>> costs;
  for (const RankSchedule& rank : ranks) costs.push_back(predict_costs(*rank.schedule, toy_speeds()));
  for (const Simulation& simulation : simulate_ranks(ranks, costs)) print_simulation(simulation);
}

void print_memory(const Schedule& s) {
  const HappensBefore order(s);
  for (const Tier tier : {Tier::host, Tier::device}) {
    const MemoryBound bound = memory_bound(s, order, tier);
    fmt::print("tier {}: resident {}, in order {}, at most {} in {}\n", static_cast<int>(tier), resident(s, tier).bytes,
               memory_in_order(s, tier).bytes, bound.bytes, bound.op);
  }
  const Traffic moved = traffic_of(s);
  fmt::print("disk read {}, written {}, copied {}\n", moved.read, moved.written, moved.copied);
  for (BlockId b = 0; b <= s.head(); b++)
    fmt::print("b{} stage {}, slice {} of {} elements, optimizer {}, stays {} {}, borrows {}, again {}\n", b, s.stage(b),
               s.slice_elements(b), s.blocks[static_cast<size_t>(b)].parameters, s.optimizer_slice_bytes(b),
               s.parameters_stay(b), s.gradient_stays(b), s.borrows(b), s.output_again(b));
}

void print_problems(const char* what, const std::vector<Problem>& problems) {
  fmt::print("{}: {} problems", what, problems.size());
  for (const Problem& problem : problems) fmt::print(" {}", problem.op);
  fmt::print("\n");
}

// The schedule as it is, and with single mistakes.
void print_checks(const Schedule& s) {
  print_problems("as it is", check(s));
  const size_t last = s.ops.size() - 1;
  for (size_t op : {last / 5, last / 2, 4 * last / 5}) {
    Schedule broken = s;
    broken.ops[op].after.clear();
    print_problems("without its dependencies", check(broken));
    broken = s;
    broken.ops.push_back(s.ops[op]);
    print_problems("twice", check(broken));
    broken = s;
    for (int32_t Op::* field : {&Op::block, &Op::micro}) std::swap(broken.ops[op].*field, broken.ops[last - op].*field);
    std::swap(broken.ops[op].kind, broken.ops[last - op].kind);
    print_problems("exchanged", check(broken));
  }
}

void print_checks_together(Ranks ranks) {
  print_problems("together", check_ranks(ranks));
  for (const RankSchedule& rank : ranks) {
    size_t op = 0;
    for (const auto& encounter : encounters_of(rank)) {
      if (encounter) {
        const Rendezvous& at = encounter->at;
        fmt::print("{} meets {} {} {} {} {} {} {} {}\n", op, op_name(at.kind), at.column, at.stage, at.tensor_rank,
                   at.experts, at.block, at.micro, at.occurrence);
      }
      op++;
    }
  }
}

// --- layouts ---------------------------------------------------------------------------------------------------------

void show(const std::string& title, const Schedule& schedule, const View& view) {
  fmt::print("== {}\n", title);
  view.one(schedule);
}

void show_random(const View& view) {
  Random random(27);
  for (int i = 0; i < 150; i++) show(fmt::format("random {}", i), random_schedule(random), view);
  for (int i = 0; i < 80; i++) {
    const auto blocks = make_blocks(pick(random, 3, 7), pick(random, 0, 1) == 1);
    const int32_t micros = pick(random, 1, 5);
    const RandomLayout layout = random_layout(random, blocks);
    std::vector<Schedule> stages;
    for (int32_t stage = 0; stage < layout.stages; stage++) {
      stages.push_back(of_stage(blocks, micros, layout, stage));
      show(fmt::format("random layout {}, stage {}", i, stage), stages.back(), view);
    }
    if (view.together) view.together(ranks_of(stages, layout));
  }
}

struct Case {
  const char* model;
  const char* yaml;
};
constexpr Case kCases[] = {
    {"gpt2", ""},
    {"gpt2", "train: {precision: bf16}\n"},
    {"llama", "memory: {recompute: selective}\n"},
    {"llama", "memory: {recompute: full}\n"},
    {"gpt2", "memory: {recompute: 2}\n"},
    {"llama", "memory: {activations: int8}\n"},
    {"llama-10m", "memory: {spill: spill}\n"},
    {"wide gpt2", "memory: {spill: spill, window: 1}\n"},
    {"wide gpt2", "memory: {spill: spill, window: 3, recompute: full}\n"},
    {"wide gpt2", "memory: {spill: spill}\ntrain: {precision: fp16, optimizer: adafactor}\n"},
    {"wide experts", "memory: {spill: spill}\n"},
    {"llama-10m", "memory: {device: 1GiB, simulated_device: {bandwidth: 8GB}}\n"},
    {"wide gpt2", "memory: {device: 1GiB, simulated_device: {bandwidth: 8GB}, spill: spill, window: 2}\n"},
    {"gpt2", "parallel: {data: 2}\n"},
    {"llama", "parallel: {data: 2, zero: 1}\n"},
    {"gpt2", "parallel: {data: 2, zero: 2}\n"},
    {"llama", "parallel: {data: 2, zero: 3}\n"},
    {"wide gpt2", "parallel: {data: 2, zero: 3}\nmemory: {spill: spill, window: 2}\n"},
    {"llama", "parallel: {data: 1, tensor: 2}\n"},
    {"llama-10m", "parallel: {data: 1, tensor: 2}\nmemory: {spill: spill}\n"},
    {"bert", "parallel: {data: 2, tensor: 2, zero: 2}\n"},
    {"llama", "parallel: {data: 1, context: 2}\n"},
    {"gpt2", "parallel: {data: 1, context: 2, context_form: ulysses, zero: 3}\n"},
    {"gpt2", "parallel: {data: 1, pipeline: 2, schedule: gpipe}\n"},
    {"gpt2", "parallel: {data: 1, pipeline: 2}\n"},
    {"llama", "parallel: {data: 1, pipeline: 3}\nmemory: {recompute: full}\n"},
    {"gpt2", "parallel: {data: 1, pipeline: 2, schedule: interleaved, interleave: 2}\n"},
    {"gpt2", "parallel: {data: 2, pipeline: 2, schedule: zero_bubble}\n"},
    {"llama", "parallel: {data: 1, pipeline: 2, schedule: zero_bubble}\nmemory: {recompute: selective}\n"},
    {"wide gpt2", "parallel: {data: 2, pipeline: 2, zero: 3}\nmemory: {spill: spill}\n"},
    {"gpt2", "parallel: {data: 1, pipeline: 2, tensor: 2, zero: 1}\n"},
    {"softmax experts", "parallel: {data: 2, expert: 2}\n"},
    {"sigmoid experts", "parallel: {data: 4, expert: 2, zero: 3}\ntrain: {micro_batch: 2}\n"},
    {"wide experts", "parallel: {data: 2, pipeline: 2, expert: 2}\nmemory: {spill: spill}\n"},
    {"gpt2 dropout", "token_dropping: {from: 16, to: 64, over: 100 steps}\n"},
};

NamedModel model_named(const std::string& name) {
  for (const NamedModel& model : all_models())
    if (model.name == name) return model;
  throw std::runtime_error("no model " + name);
}

std::string strategy_line(const Strategy& s) {
  return fmt::format("order {}, window {}, ahead {}, placement{}, keep{}, parks {}", static_cast<int>(s.order), s.window,
                     s.ahead, words(s.placement, kPlacements), words(s.keep, kKeeps), digits(s.offloads));
}

// One stage of a run, and the strategies that fit into several amounts of memory.
struct StagePlans {
  std::string title;
  const std::vector<BlockFacts>& blocks;
  int32_t micros;
  StrategyLimits limits;
  std::function<void(int64_t room, const std::vector<Strategy>&)> found;
};

void try_rooms(StagePlans plans) {
  const auto most = [&](const Strategy& strategy, Tier tier) {
    return most_memory(plans.blocks, plans.micros, strategy, tier);
  };
  StrategyLimits& limits = plans.limits;
  const Strategy plain = limits.plain(), tightest = tightest_strategy(plans.blocks, plans.micros, limits);
  for (int fifths : {5, 3, 1, 0}) {
    const auto between = [&](Tier tier) {
      const int64_t least = most(tightest, tier);
      return least + std::max<int64_t>(0, most(plain, tier) - least) * fifths / 5;
    };
    limits.room = between(Tier::host);
    if (limits.layout.device) limits.device = between(Tier::device);
    plans.found(limits.room, fitting_strategies(plans.blocks, plans.micros, limits));
  }
}

void for_each_stage(const std::function<void(StagePlans)>& use,
                    const std::function<void(const std::string&, std::vector<Schedule>)>& plain = {}) {
  for (const Case& it : kCases) {
    const Config config = read_run(model_named(it.model), it.yaml);
    const PlanInput input = input_of(config);
    const auto blocks = facts_for(input, config.train.micro_batch);
    const int32_t micros = input.micros_of(config.train.micro_batch);
    std::vector<Schedule> steps;
    std::string title = fmt::format("{} | {}", it.model, it.yaml);
    std::replace(title.begin(), title.end(), '\n', ';');
    for (int32_t stage = 0; stage < input.layout.pipeline; stage++) {
      const StrategyLimits limits = limits_of(input, blocks, stage, 0);
      use({fmt::format("{} stage {}", title, stage), blocks, micros, limits, {}});
      steps.push_back(training_schedule(blocks, micros, limits.plain()));
    }
    if (plain) plain(title, std::move(steps));
  }
}

void show_planned(const View& view) {
  const auto show_stage = [&](StagePlans plans) {
    std::set<std::string> seen;
    plans.found = [&, plans](int64_t, const std::vector<Strategy>& strategies) {
      for (const Strategy& s : strategies) {
        if (&s != &strategies.front() && &s != &strategies.back()) continue;
        const std::string line = strategy_line(s);
        if (!seen.insert(line).second) continue;
        const std::string title = fmt::format("{} | {} |", plans.title, line);
        show(title + " step", with_save(training_schedule(plans.blocks, plans.micros, s)), view);
        show(title + " validation", evaluation_schedule(plans.blocks, plans.micros, s), view);
        show(title + " last save", final_save_schedule(plans.blocks, s), view);
      }
    };
    try_rooms(plans);
  };
  for_each_stage(show_stage, [&](const std::string& title, const std::vector<Schedule>& stages) {
    std::vector<RankSchedule> ranks;
    for (int32_t column = 0; column < std::min(2, stages.front().layout.sizes().replicas()); column++)
      for (const Schedule& stage : stages) ranks.push_back({&stage, column});
    fmt::print("== {} together\n", title);
    if (view.together && stages.front().layout.sizes().ranks() > 1) view.together(ranks);
  });
}

void show_all(const View& view) {
  show_random(view);
  show_planned(view);
}

}  // namespace

void dump_strategies() {
  for_each_stage([](StagePlans plans) {
    fmt::print("== {}\n", plans.title);
    plans.found = [](int64_t room, const std::vector<Strategy>& strategies) {
      fmt::print("room {}\n", room);
      for (const Strategy& strategy : strategies) fmt::print("  {} | {}\n", strategy_line(strategy), describe(strategy));
    };
    try_rooms(std::move(plans));
  });
  const auto blocks = make_blocks(7, true);
  for (const ComputeOrder order : {ComputeOrder::by_micro, ComputeOrder::by_block})
    for (int64_t bytes = 500; bytes < 12000; bytes += 500)
      fmt::print("keep within {}:{}\n", bytes, words(choose_keep(blocks, 3, order, bytes), kKeeps));
}

void dump_schedules() { show_all({print_ops, {}}); }
void dump_costs() { show_all({print_costs, print_costs_together}); }
void dump_memory() { show_all({print_memory, {}}); }
void dump_checks() { show_all({print_checks, print_checks_together}); }

}  // namespace megalith::recording
