#include "planner/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "memory/spill_file.h"
#include "planner/budget.h"
#include "schedule/passes/input_offload.h"

namespace megalith {
namespace {

MemoryUse plain_peak(const Schedule& step) { return memory_in_order(training_schedule(step.blocks, step.micros, {})); }

// Rounds up: each array begins at a chunk of its file.
int64_t whole_chunks(int64_t bytes) { return (bytes + kSpillChunk - 1) / kSpillChunk * kSpillChunk; }

// Returns the memory that the bound includes and the sum at the peak does not. A run may use it, but few runs use all of it.
std::vector<std::pair<std::string, Bytes>> beyond_the_peak(const MemoryTable& t) {
  return {{"parallel lanes, save", std::max(Bytes(0), t.bound.tensors - Bytes(t.planned.total()))},
          {"gaps", t.bound.gaps},
          {"save buffers", t.bound.save},
          {"disk tier", t.bound.streams},
          {"batches, fragments", t.bound.rest}};
}

}  // namespace

MemoryUse on_disk(const Schedule& step) {
  MemoryUse use;
  for (size_t b = 0; b < step.blocks.size(); b++) {
    const BlockFacts& block = step.blocks[b];
    const Placement placed = step.placed(static_cast<BlockId>(b));
    if (placed == Placement::on_disk) use[MemoryKind::parameters] += block.values_disk_bytes;
    if (placed == Placement::on_disk) use[MemoryKind::gradients] += block.values_disk_bytes;
    if (placed != Placement::in_memory) use[MemoryKind::optimizer] += block.optimizer_disk_bytes;
  }
  for (int64_t bytes : offloaded_input_bytes(step)) use[MemoryKind::activations] += step.micros * whole_chunks(bytes);
  return use;
}

MemoryTable memory_table(const Plan& plan) {
  MemoryTable table{.plain = plain_peak(plan.step), .planned = plan.predicted.at_peak, .disk = on_disk(plan.step)};
  table.budget = plan.budget;
  table.host_ranks = plan.host_ranks;
  table.bound = process_bound(most_memory(plan.blocks, plan.micros, plan.strategy), plan.process, plan.memory);
  table.strategy = describe(plan.strategy);
  if (plan.device_budget.value == 0) return table;
  table.device = plan.predicted.on_device;
  table.device_budget = plan.device_budget;
  table.device_most = device_with(most_memory(plan.blocks, plan.micros, plan.strategy, Tier::device));
  return table;
}

MemoryTable memory_table(const Shortfall& why) {
  MemoryTable table{.plain = plain_peak(why.step), .planned = memory_in_order(why.step), .disk = on_disk(why.step)};
  table.budget = why.budget;
  table.host_ranks = why.host_ranks;
  table.bound = why.least;
  table.fits = false;
  table.strategy = describe(why.tightest);
  table.suggestions = why.suggestions;
  if (why.device_budget.value == 0) return table;
  table.device = memory_in_order(why.step, Tier::device);
  table.device_budget = why.device_budget;
  table.device_most = why.device_least;
  return table;
}

std::string show(const MemoryTable& t) {
  const auto cell = [](int64_t bytes) { return bytes > 0 ? show(Bytes(bytes)) : std::string("-"); };
  const bool device = t.device_budget.value > 0;
  const auto row = [&](std::string_view what, const std::string& a, const std::string& b, const std::string& c,
                       const std::string& on_device = "-") {
    return fmt::format("  {:<22}{:>12}{:>14}{}{:>12}\n", what, a, b, device ? fmt::format("{:>14}", on_device) : "", c);
  };
  const bool adapted = !t.strategy.empty();
  const Bytes most = t.bound.sum();
  std::string text = row("", "all in RAM", t.fits ? "planned" : "at least", "on disk", "on device");
  for (size_t k = 0; k < kMemoryKinds; k++) {
    const auto kind = static_cast<MemoryKind>(k);
    if (t.plain[kind] + t.planned[kind] + t.disk[kind] + t.device[kind] > 0)
      text += row(name(kind), cell(t.plain[kind]), cell(t.planned[kind]), cell(t.disk[kind]), cell(t.device[kind]));
  }
  text += row("process", cell(t.bound.process.value), cell(t.bound.process.value), "-");
  text += row("sum at the peak", cell(t.plain.total() + t.bound.process.value), cell(t.planned.total() + t.bound.process.value),
              cell(t.disk.total()), cell(t.device.total()));
  for (const auto& [what, bytes] : beyond_the_peak(t))
    if (bytes.value > 0) text += row(fmt::format("+ {}", what), "", show(bytes), "", "");
  text += row("at most", "", show(most), "", show(t.device_most));
  text += row(t.host_ranks > 1 ? "budget of a rank" : "budget", "", show(t.budget), "", show(t.device_budget));
  text += '\n';
  if (t.fits) {
    text += adapted ? fmt::format("fits: {}\n", t.strategy) : "fits with everything in memory and nothing recomputed\n";
    return text;
  }
  const std::string even = adapted ? " even with " + t.strategy : "";
  if (most > t.budget) text += fmt::format("does not fit: {} short{}\n", show(most - t.budget), even);
  if (t.device_most > t.device_budget)
    text += fmt::format("does not fit the device: {} short{}\n", show(t.device_most - t.device_budget), even);
  for (const Suggestion& each : t.suggestions)
    text += fmt::format("  {:<32} would fit, with {}\n", each.setting, show(each.bytes));
  std::string both;
  if (most > t.budget) both += fmt::format("memory.ram={}MiB ", t.host_ranks * ((most.value >> 20) + 1));
  if (t.device_most > t.device_budget) both += fmt::format("memory.device={}MiB ", (t.device_most.value >> 20) + 1);
  if (!both.empty()) both.pop_back();
  text += fmt::format("  {:<32} would fit\n", both);
  return text;
}

nlohmann::json to_json(const MemoryTable& t) {
  const auto kinds = [&](const MemoryUse& use, bool with_process) {
    nlohmann::json all;
    for (size_t k = 0; k < kMemoryKinds; k++) all[std::string(name(static_cast<MemoryKind>(k)))] = use.bytes[k];
    if (with_process) all["process"] = t.bound.process.value;
    return all;
  };
  nlohmann::json ways = nlohmann::json::array();
  for (const Suggestion& each : t.suggestions)
    ways.push_back({{"setting", each.setting}, {"bytes", each.bytes.value}});
  nlohmann::json beyond = nlohmann::json::object();
  for (const auto& [what, bytes] : beyond_the_peak(t)) beyond[what] = bytes.value;
  return {{"fits", t.fits},
          {"budget_bytes", t.budget.value},
          {"host_ranks", t.host_ranks},
          {"most_bytes", t.bound.sum().value},
          {"beyond_peak", beyond},
          {"unadapted", kinds(t.plain, true)},
          {"planned", kinds(t.planned, true)},
          {"planned_bytes", t.planned.total() + t.bound.process.value},
          {"unadapted_bytes", t.plain.total() + t.bound.process.value},
          {"disk", kinds(t.disk, false)},
          {"disk_bytes", t.disk.total()},
          {"device_budget_bytes", t.device_budget.value},
          {"device_most_bytes", t.device_most.value},
          {"device", kinds(t.device, false)},
          {"device_bytes", t.device.total()},
          {"strategy", t.strategy},
          {"ways", ways}};
}

}  // namespace megalith
