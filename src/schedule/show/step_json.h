// The numbers of a step as JSON, for plan.json, summary.json, the report and the commands that print JSON.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "schedule/predict/costs.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

// Seconds that each op takes; 0 for an op that did not run.
std::vector<double> op_seconds(std::span<const Span> spans);

// [{op, block, count, predicted_s, measured_s}], one entry per op kind and block, in the order of first appearance. Seconds
// are sums over all micro-batches. Ops of the whole step have no block. Without `measured`, entries have no measured_s.
nlohmann::json ops_json(const Schedule& schedule, std::span<const double> predicted, std::span<const double> measured = {});

// [{lane, waited_for, seconds}], longest first.
nlohmann::json stalls_json(const std::vector<Stall>& stalls);

// {compute: seconds, ...} for the lanes that have ops.
nlohmann::json busy_json(const Schedule& schedule, const std::array<double, kLanes>& busy);

// {read: {read_bytes, written_bytes}, ...} for the lanes that move bytes over the spill disk.
nlohmann::json traffic_json(const Schedule& schedule);

// {bound_by, seconds: {cores, memory bandwidth, disk, network}}: see predict/roofline.h.
nlohmann::json limits_json(const Schedule& step, const MachineSpeeds& speeds);

}  // namespace megalith
