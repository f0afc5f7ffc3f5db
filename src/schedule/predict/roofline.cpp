#include "schedule/predict/roofline.h"

#include <algorithm>

#include "schedule/op_type.h"
#include "schedule/passes/training_step.h"

namespace megalith {
namespace {

// Reads and writes run at the same time as far as possible. The rest runs alone.
double disk_seconds(const Traffic& traffic, const MachineSpeeds& speeds) {
  const auto read = static_cast<double>(traffic.read), written = static_cast<double>(traffic.written);
  const double both = std::min(read, written);
  const auto seconds = [](double bytes, double speed) { return bytes > 0 ? bytes / speed : 0; };
  return seconds(2 * both, speeds.spill_mixed) + seconds(read - both, speeds.spill_read) +
         seconds(written - both, speeds.spill_write);
}

}  // namespace

std::array<double, kResources> useful_seconds(const Schedule& step, const MachineSpeeds& speeds) {
  std::array<double, kResources> useful{};
  const auto add = [&](Resource resource, const Cost& cost) {
    useful[static_cast<size_t>(resource)] += cost.seconds * cost.use[static_cast<size_t>(resource)];
  };
  const Schedule plain = training_step(step.blocks, step.micros);
  const std::vector<Cost> costs = predict_costs(plain, speeds);
  for (size_t op = 0; op < costs.size(); op++)
    if (const BlockId block = plain.ops[op].block; block == kNoBlock || step.holds(block))
      add(Resource::memory, costs[op]);
  const std::vector<Cost> all = predict_costs(step, speeds);
  for (size_t op = 0; op < all.size(); op++)
    if (!type_of(step.ops[op].kind).repeats) add(Resource::network, all[op]);
  double flop = 0;
  for (size_t b = 0; b < step.blocks.size(); b++)
    if (step.holds(static_cast<BlockId>(b)))
      flop += (step.blocks[b].forward.flop + step.blocks[b].backward.flop) * step.micros;
  useful[static_cast<size_t>(Resource::cores)] = flop / speeds.flops;
  useful[static_cast<size_t>(Resource::disk)] = disk_seconds(traffic_of(step), speeds);
  return useful;
}

Resource binding(const std::array<double, kResources>& useful) {
  return static_cast<Resource>(std::max_element(useful.begin(), useful.end()) - useful.begin());
}

std::array<Traffic, kLanes> traffic_by_lane(const Schedule& step) {
  std::array<Traffic, kLanes> lanes{};
  for (const Op& op : step.ops) {
    const Traffic one = traffic_of(step, op);
    Traffic& lane = lanes[static_cast<size_t>(op.lane)];
    lane.read += one.read;
    lane.written += one.written;
  }
  return lanes;
}

}  // namespace megalith
