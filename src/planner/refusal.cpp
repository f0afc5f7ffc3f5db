#include "planner/refusal.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "config/options.h"
#include "config/resolve_layout.h"
#include "planner/budget.h"
#include "planner/fitting.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/run_blocks.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

// Single settings that would make it fit, with what the process would then take.
std::vector<Way> ways_to_fit(const Config& config, Bytes process, Bytes budget) {
  std::vector<Way> ways;
  const bool divided = layout_of(config).divides_parameters();
  const OptimizerRow& optimizer = row_of(config.train.optimizer);
  const auto try_with = [&](const std::string& say, const std::function<void(Config&)>& change) {
    Config changed = config;
    change(changed);
    const int64_t micro = changed.train.micro_batch > 0 ? changed.train.micro_batch : 1;
    const int64_t bytes = least_memory(changed, micro);
    const Bytes all = process_with(bytes, process);
    if (config.memory.device && least_memory(changed, micro, Tier::device) > room_on_device(device_of(config))) return;
    if (all <= budget) ways.push_back({say, all});
  };
  if (config.train.micro_batch > 1) try_with("train.micro_batch=auto", [](Config& c) { c.train.micro_batch = 0; });
  if (config.memory.recompute != Recompute::automatic)
    try_with("memory.recompute=auto", [](Config& c) { c.memory.recompute = Recompute::automatic; });
  if (config.memory.spill.empty() && !config.memory.device)
    try_with("memory.spill=DIRECTORY", [](Config& c) { c.memory.spill = std::string("."); });
  if (config.memory.window > 1) try_with("memory.window=1", [](Config& c) { c.memory.window = 1; });
  if (config.train.optimizer_state == Packing::fp32 && optimizer.elementwise && !divided)
    try_with("train.optimizer_state=int8", [](Config& c) { c.train.optimizer_state = Packing::int8; });
  if (config.train.activations == Packing::fp32 && config.train.precision == Precision::fp32 &&
      config.memory.recompute != Recompute::selective)
    try_with("memory.activations=int8", [](Config& c) { c.train.activations = Packing::int8; });
  for (const OptimizerRow& other : kOptimizers)
    if (optimizer.state_floats > 1 && other.state_floats == 0 && !divided)
      try_with(fmt::format("train.optimizer={}", other.word), [&](Config& c) { c.train.optimizer = other.kind; });
  return ways;
}

// What a rank takes by kind; `all` has what is not counted and what a save takes, too.
std::string table_of(const MemoryUse& use, Bytes process, Bytes all) {
  std::string table;
  Bytes rest = all;
  const nlohmann::json kinds = memory_by_kind(use, process);
  for (const auto& [kind, bytes] : kinds.items())
    if (const Bytes some(bytes.get<int64_t>()); some.value > 0) {
      table += fmt::format("{} {}, ", kind, show(some));
      rest = rest - some;
    }
  return table + fmt::format("other {}", show(rest));
}

// Its hint is for where no single setting helps.
UserError::Parts with_ways(UserError::Parts what, const std::vector<Way>& ways) {
  std::vector<std::string> settings;
  for (const Way& way : ways) settings.push_back(fmt::format("{} ({})", way.setting, show(way.bytes)));
  if (!settings.empty()) what.hint = fmt::format("what would make it fit: {}", join(settings, "; "));
  return what;
}

}  // namespace

DoesNotFit::DoesNotFit(Parts what, Shortfall why)
    : UserError(with_ways(std::move(what), why.ways)), shortfall(std::move(why)) {}

DoesNotFit once_begun(const DoesNotFit& refusal) {
  Shortfall why = refusal.shortfall;
  std::erase_if(why.ways, [](const Way& way) {
    return !find_option(way.setting.substr(0, way.setting.find('=')))->may_change;
  });
  UserError::Parts what = refusal.parts;
  what.hint = "give it more memory, or begin anew with other settings";
  return {std::move(what), std::move(why)};
}

void refuse(const Plan& plan, const Config& config) {
  Shortfall why{.micro_batch = plan.micro_batch,
                .budget = plan.budget,
                .process = plan.process,
                .host_ranks = plan.host_ranks,
                .ways = ways_to_fit(config, plan.process, plan.budget)};
  const auto blocks = facts_for(config, plan.micro_batch);
  why.tightest = tightest_strategy(blocks, plan.micros, limits_of(config, blocks, plan.stage, 0));
  why.step = training_schedule(blocks, plan.micros, why.tightest);
  why.least = process_with(most_memory(blocks, plan.micros, why.tightest), plan.process);
  why.device_budget = device_of(config);
  const int64_t on_device = config.memory.device ? most_memory(blocks, plan.micros, why.tightest, Tier::device) : 0;
  if (config.memory.device) why.device_least = device_with(on_device);
  const bool device_short = why.device_least > why.device_budget;
  const std::string how = describe(why.tightest);
  const MemoryUse use = memory_in_order(why.step, device_short ? Tier::device : Tier::host);
  const Bytes least = device_short ? why.device_least : why.least;
  const int64_t ranks = device_short ? 1 : plan.host_ranks;  // memory.ram is the host's
  const std::string each = ranks > 1 ? fmt::format(" for {} ranks, {} each,", ranks, show(least)) : "";
  UserError::Parts what{"", device_short ? "memory.device" : "memory.ram",
                        fmt::format("at least {}{}{} ({})", show(Bytes(ranks * least.value)), each,
                                    how.empty() ? "" : " with " + how,
                                    table_of(use, device_short ? Bytes(0) : plan.process, least)),
                        show(device_short ? why.device_budget : Bytes(ranks * plan.budget.value)),
                        "use a smaller model or data.sequence, or more memory"};
  throw DoesNotFit(std::move(what), std::move(why));
}

}  // namespace megalith
