#include "planner/plan_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "families/family.h"
#include "memory/machine.h"
#include "families/facts.h"
#include "schedule/op_type.h"
#include "schedule/passes/residency.h"
#include "schedule/show/step_json.h"

namespace megalith {
namespace {

// [{compute_s, waits_for_ranks_s, peak_bytes}], one entry per pipeline stage.
nlohmann::json stages_json(const Plan& plan) {
  nlohmann::json list = nlohmann::json::array();
  for (const Simulation& stage : plan.predicted_stages)
    list.push_back({{"compute_s", stage.busy[static_cast<size_t>(Lane::compute)]},
                    {"waits_for_ranks_s", stage.waited_for_ranks},
                    {"peak_bytes", (Bytes(stage.peak_bytes) + plan.process).value}});
  return list;
}

// {axis: {latency_s, bytes_per_s}}, for axes with several ranks.
nlohmann::json links_json(const Plan& plan) {
  nlohmann::json links = nlohmann::json::object();
  for (size_t axis = 0; axis < kAxes && plan.strategy.layout.sizes().ranks() > 1; axis++)
    if (const LinkSpeed& link = plan.speeds.links[axis]; link.bytes_per_s > 0)
      links[name_of(static_cast<Axis>(axis))] = {{"latency_s", link.latency_s}, {"bytes_per_s", link.bytes_per_s}};
  return links;
}

}  // namespace

nlohmann::json memory_by_kind(const MemoryUse& use, Bytes process) {
  return {{"parameters", use[MemoryKind::parameters]},
          {"gradients", use[MemoryKind::gradients]},
          {"optimizer", use[MemoryKind::optimizer]},
          {"activations", use[MemoryKind::activations] + use[MemoryKind::saved] + use[MemoryKind::aside]},
          {"workspace", use[MemoryKind::workspace]},
          {"staging", use[MemoryKind::staging]},
          {"process", process.value}};
}

nlohmann::json to_json(const Plan& plan, const PlanInput& input) {
  const ModelShape& s = input.shape;
  return {{"model",
           {{"arch", s.family->name},
            {"layers", s.layers},
            {"hidden", s.hidden},
            {"heads", s.heads},
            {"vocab", s.vocab},
            {"context", s.context},
            {"parameters", parameter_count(s)}}},
          {"tokens_per_step", input.batch * input.sequence},
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
            {"blocks_away", std::count(plan.strategy.placement.begin(), plan.strategy.placement.end(), Placement::on_disk)},
            {"blocks_with_moments_away",
             std::count(plan.strategy.placement.begin(), plan.strategy.placement.end(), Placement::optimizer_on_disk)},
            {"layers_with_inputs_away", std::count(plan.strategy.offloads.begin(), plan.strategy.offloads.end(), true)},
            {"disk_read_bytes", traffic_of(plan.step).read},
            {"disk_written_bytes", traffic_of(plan.step).written}}},
          {"warnings", plan.warnings},
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
          {"machine", {{"cpu", processor_name()}, {"cores", plan.threads}, {"links", links_json(plan)}}}};
}

}  // namespace megalith
