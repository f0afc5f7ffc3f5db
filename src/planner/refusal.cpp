#include "planner/refusal.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "config/options.h"
#include "planner/fitting.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/run_blocks.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

// True if a run that has a checkpoint may change the setting, "key=value".
bool may_change(const std::string& setting) { return find_option(setting.substr(0, setting.find('=')))->may_change; }

// Returns single settings that would make the run fit, with the memory that the process would then need.
std::vector<Suggestion> suggestions_for(const PlanInput& input, Bytes process, Bytes budget) {
  std::vector<Suggestion> suggestions;
  const bool divided = input.layout.divides_parameters();
  const OptimizerRow& optimizer = row_of(input.optimizer);
  const auto try_with = [&](const std::string& say, const std::function<void(PlanInput&)>& change) {
    if (input.resumed && !may_change(say)) return;
    PlanInput changed = input;
    change(changed);
    const std::optional<int64_t> micro = smallest_micro_batch(changed);
    if (!micro) return;
    const int64_t bytes = least_memory(changed, *micro);
    const Bytes all = process_bound(bytes, process, changed.memory).sum();
    if (input.memory.device && least_memory(changed, *micro, Tier::device) > room_on_device(device_of(input.memory))) return;
    if (all <= budget) suggestions.push_back({say, all});
  };
  if (input.micro_batch > 1) try_with("train.micro_batch=auto", [](PlanInput& i) { i.micro_batch = 0; });
  if (input.memory.recompute != Recompute::automatic)
    try_with("memory.recompute=auto", [](PlanInput& i) { i.memory.recompute = Recompute::automatic; });
  if (input.memory.spill.empty() && !input.memory.device)
    try_with("memory.spill=DIRECTORY", [](PlanInput& i) { i.memory.spill = std::string("."); });
  if (input.memory.window > 1) try_with("memory.window=1", [](PlanInput& i) { i.memory.window = 1; });
  if (input.optimizer_state == Packing::fp32 && optimizer.elementwise && !divided)
    try_with("train.optimizer_state=int8", [](PlanInput& i) { i.optimizer_state = Packing::int8; });
  if (input.activations == Packing::fp32 && input.precision == Precision::fp32 &&
      input.memory.recompute != Recompute::selective)
    try_with("memory.activations=int8", [](PlanInput& i) { i.activations = Packing::int8; });
  for (const OptimizerRow& other : kOptimizers)
    if (optimizer.state_floats > 1 && other.state_floats == 0 && !divided)
      try_with(fmt::format("train.optimizer={}", other.word), [&](PlanInput& i) { i.optimizer = other.kind; });
  return suggestions;
}

// Lists the memory of a rank by kind. `all` is the total: it also has memory that is not counted and memory for a save.
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

// Replaces the hint by the suggestions, if there are any.
UserError::Parts with_suggestions(UserError::Parts what, const std::vector<Suggestion>& suggestions) {
  std::vector<std::string> settings;
  for (const Suggestion& each : suggestions) settings.push_back(fmt::format("{} ({})", each.setting, show(each.bytes)));
  if (!settings.empty()) what.hint = fmt::format("to make it fit, set one of these: {}", join(settings, "; "));
  return what;
}

}  // namespace

DoesNotFit::DoesNotFit(Parts what, Shortfall why)
    : UserError(with_suggestions(std::move(what), why.suggestions)), shortfall(std::move(why)) {}

void refuse(const Plan& plan, const PlanInput& input) {
  Shortfall why{.micro_batch = plan.micro_batch,
                .budget = plan.budget,
                .host_ranks = plan.host_ranks,
                .suggestions = suggestions_for(input, plan.process, plan.budget)};
  const auto blocks = facts_for(input, plan.micro_batch);
  why.tightest = tightest_strategy(blocks, plan.micros, limits_of(input, blocks, plan.stage, 0));
  why.step = training_schedule(blocks, plan.micros, why.tightest);
  why.least = process_bound(most_memory(blocks, plan.micros, why.tightest), plan.process, input.memory);
  why.device_budget = device_of(input.memory);
  const int64_t on_device = input.memory.device ? most_memory(blocks, plan.micros, why.tightest, Tier::device) : 0;
  if (input.memory.device) why.device_least = device_with(on_device);
  const bool device_short = why.device_least > why.device_budget;
  const std::string how = describe(why.tightest);
  const MemoryUse use = memory_in_order(why.step, device_short ? Tier::device : Tier::host);
  const Bytes least = device_short ? why.device_least : why.least.sum();
  const int64_t ranks = device_short ? 1 : plan.host_ranks;  // memory.ram is the host's
  const std::string each = ranks > 1 ? fmt::format(" for {} ranks, {} each,", ranks, show(least)) : "";
  UserError::Parts what{"", device_short ? "memory.device" : "memory.ram",
                        fmt::format("at least {}{}{} ({})", show_at_least(Bytes(ranks * least.value)), each,
                                    how.empty() ? "" : " with " + how,
                                    table_of(use, device_short ? Bytes(0) : plan.process, least)),
                        show(device_short ? why.device_budget : Bytes(ranks * plan.budget.value)),
                        input.resumed ? "use more memory, or start a new run with other settings"
                                      : "use a smaller model or data.sequence, or more memory"};
  throw DoesNotFit(std::move(what), std::move(why));
}

}  // namespace megalith
