#include "schedule/show/step_json.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "schedule/predict/roofline.h"

namespace megalith {

using nlohmann::json;

std::vector<double> op_seconds(std::span<const Span> spans) {
  std::vector<double> seconds;
  for (const Span& span : spans) seconds.push_back(span.ran() ? span.end - span.start : 0);
  return seconds;
}

json ops_json(const Schedule& schedule, std::span<const double> predicted, std::span<const double> measured) {
  MEGALITH_ASSERT(predicted.size() == schedule.ops.size());
  MEGALITH_ASSERT(measured.empty() || measured.size() == schedule.ops.size());
  struct Row {
    OpKind kind;
    BlockId block;
    int64_t count = 0;
    double predicted = 0, measured = 0;
  };
  std::vector<Row> rows;
  std::map<std::pair<OpKind, BlockId>, size_t> known;
  for (size_t i = 0; i < schedule.ops.size(); i++) {
    const Op& op = schedule.ops[i];
    const auto [place, added] = known.try_emplace({op.kind, op.block}, rows.size());
    if (added) rows.push_back({op.kind, op.block});
    Row& row = rows[place->second];
    row.count++;
    row.predicted += predicted[i];
    if (!measured.empty()) row.measured += measured[i];
  }
  json list = json::array();
  for (const Row& row : rows) {
    json entry{{"op", name(row.kind)}, {"count", row.count}, {"predicted_s", row.predicted}};
    if (row.block != kNoBlock) entry["block"] = schedule.blocks[row.block].name;
    if (!measured.empty()) entry["measured_s"] = row.measured;
    list.push_back(std::move(entry));
  }
  return list;
}

json stalls_json(const std::vector<Stall>& stalls) {
  json list = json::array();
  for (const Stall& stall : stalls)
    list.push_back({{"lane", name(stall.lane)}, {"waited_for", name(stall.waited_for)}, {"seconds", stall.seconds}});
  return list;
}

json busy_json(const Schedule& schedule, const std::array<double, kLanes>& busy) {
  json lanes = json::object();
  for (const Op& op : schedule.ops) lanes[std::string(name(op.lane))] = busy[static_cast<size_t>(op.lane)];
  return lanes;
}

json traffic_json(const Schedule& schedule) {
  json lanes = json::object();
  const auto traffic = traffic_by_lane(schedule);
  for (size_t lane = 0; lane < kLanes; lane++)
    if (traffic[lane].read + traffic[lane].written > 0)
      lanes[std::string(name(static_cast<Lane>(lane)))] = {{"read_bytes", traffic[lane].read},
                                                           {"written_bytes", traffic[lane].written}};
  return lanes;
}

json limits_json(const Schedule& step, const MachineSpeeds& speeds) {
  const auto useful = useful_seconds(step, speeds);
  json seconds = json::object();
  for (size_t r = 0; r < kResources; r++) seconds[std::string(name(static_cast<Resource>(r)))] = useful[r];
  return {{"bound_by", name(binding(useful))}, {"seconds", seconds}};
}

}  // namespace megalith
