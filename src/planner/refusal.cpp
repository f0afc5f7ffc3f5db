#include "planner/refusal.h"

#include <functional>

#include "planner/budget.h"
#include "planner/fitting.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/run_blocks.h"
#include "schedule/residency_pass.h"

namespace megalith {
namespace {

// Single settings that would make it fit, with what the run would then take.
std::vector<Way> ways_to_fit(const Config& config, Bytes process) {
  std::vector<Way> ways;
  const auto try_with = [&](const std::string& say, const std::function<void(Config&)>& change) {
    Config changed = config;
    change(changed);
    const int64_t micro = changed.train.micro_batch > 0 ? changed.train.micro_batch : 1;
    const int64_t bytes = least_memory(changed, micro);
    const Bytes all = process_with(bytes, process);
    if (config.memory.device && least_memory(changed, micro, Tier::device) > room_on_device(device_of(config))) return;
    if (all <= host_budget(config)) ways.push_back({say, all});
  };
  if (config.train.micro_batch > 1) try_with("train.micro_batch=auto", [](Config& c) { c.train.micro_batch = 0; });
  if (config.memory.recompute != Recompute::automatic)
    try_with("memory.recompute=auto", [](Config& c) { c.memory.recompute = Recompute::automatic; });
  if (config.memory.spill.empty() && !config.memory.device)
    try_with("memory.spill=DIRECTORY", [](Config& c) { c.memory.spill = std::string("."); });
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

}  // namespace

void refuse(const Plan& plan, const Config& config) {
  Shortfall why{plan.micro_batch, plan.budget, plan.process, {}, {}, {}, {}, {}, ways_to_fit(config, plan.process)};
  const auto blocks = facts_for(config, plan.micro_batch);
  why.tightest = tightest_strategy(blocks, plan.micros, limits_of(config, blocks, plan.stage, 0));
  why.step = training_schedule(blocks, plan.micros, why.tightest);
  why.least = process_with(most_memory(blocks, plan.micros, why.tightest), plan.process);
  why.device_budget = device_of(config);
  const int64_t on_device = config.memory.device ? most_memory(blocks, plan.micros, why.tightest, Tier::device) : 0;
  if (config.memory.device) why.device_least = device_with(on_device);
  const bool device_short = why.device_least > why.device_budget;
  const std::string how = describe(why.tightest);
  std::vector<std::string> ways;
  for (const Way& way : why.ways) ways.push_back(fmt::format("{} ({})", way.setting, show(way.bytes)));
  const MemoryUse use = memory_in_order(why.step, device_short ? Tier::device : Tier::host);
  UserError::Parts what{"", device_short ? "memory.device" : "memory.ram",
                        fmt::format("at least {}{} ({})", show(device_short ? why.device_least : why.least),
                                    how.empty() ? "" : " with " + how,
                                    table_of(use, device_short ? Bytes(0) : plan.process)),
                        show(device_short ? why.device_budget : plan.budget),
                        ways.empty() ? "use a smaller model or data.sequence, or more memory"
                                     : fmt::format("what would make it fit: {}", fmt::join(ways, "; "))};
  throw DoesNotFit(std::move(what), std::move(why));
}

}  // namespace megalith
