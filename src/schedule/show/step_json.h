// A step's figures as JSON: for plan.json, summary.json, the report and the commands that print it.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "schedule/predict/costs.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

// Seconds that each op takes, by op; 0 for one that did not run.
std::vector<double> op_seconds(std::span<const Span> spans);

// [{op, block, count, predicted_s, measured_s}], one entry a kind of op and block, in the order of first appearance:
// seconds of all its micro-batches. Ops of the whole step have no block; without `measured` there is no measured_s.
nlohmann::json ops_json(const Schedule& schedule, std::span<const double> predicted, std::span<const double> measured = {});

// [{lane, waited_for, seconds}], longest first.
nlohmann::json stalls_json(const std::vector<Stall>& stalls);

// {compute: seconds, ...} of the lanes that have ops.
nlohmann::json busy_json(const Schedule& schedule, const std::array<double, kLanes>& busy);

// {read: {read_bytes, written_bytes}, ...} of the lanes that move any.
nlohmann::json traffic_json(const Schedule& schedule);

// {bound_by, seconds: {cores, memory bandwidth, disk}}: see predict/roofline.h.
nlohmann::json limits_json(const Schedule& step, const MachineSpeeds& speeds);

}  // namespace megalith
