#include "schedule/cost_model.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {
namespace {

// A lane of one thread takes its time from one core. The computing threads work in step and wait for the one that shares
// its core: all of them lose what the lane takes, however many they are.
double core_use(double core_s, double seconds) { return core_s / seconds; }

}  // namespace

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::cores: return "cores";
    case Resource::memory: return "memory bandwidth";
    case Resource::disk: return "disk";
  }
  return "unknown resource";
}

Cost overhead_cost(const MachineSpeeds& speeds) { return {.seconds = speeds.op_overhead_s, .use = {}}; }

Cost compute_cost(const MachineSpeeds& speeds, double flop, double touched_bytes) {
  const double memory_s = touched_bytes / speeds.memory_bandwidth;
  const double work_s = flop / speeds.flops + memory_s;
  Cost cost{.seconds = work_s + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) cost.use = {work_s / cost.seconds, memory_s / cost.seconds, 0};
  return cost;
}

Cost write_cost(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.disk_write > 0 || bytes == 0);
  const double disk_s = bytes == 0 ? 0 : bytes / speeds.disk_write;
  const double copy_s = 2 * bytes / speeds.memory_bandwidth;
  Cost cost{.seconds = std::max(disk_s, copy_s) + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) {
    cost.use = {core_use(copy_s, cost.seconds), copy_s / cost.seconds, disk_s / cost.seconds};
  }
  return cost;
}

Cost spill_cost(const MachineSpeeds& speeds, const Traffic& traffic, double touched_bytes, Worker by,
                const TransferSpeed& measured) {
  const auto read = static_cast<double>(traffic.read), written = static_cast<double>(traffic.written);
  if (read + written == 0) return overhead_cost(speeds);
  MEGALITH_ASSERT(speeds.spill_read > 0 && speeds.spill_write > 0 && speeds.spill_mixed > 0);
  const double disk_s = read > 0 && written > 0 ? (read + written) / speeds.spill_mixed
                        : read > 0              ? read / speeds.spill_read
                                                : written / speeds.spill_write;
  const double memory_s = (read + written + touched_bytes) / speeds.memory_bandwidth;
  // One core gets its part of the memory's bandwidth.
  const double core_s = (read + written) * speeds.spill_core_s + touched_bytes / speeds.memory_bandwidth * speeds.cores;
  const double alone_s = measured.bytes_per_s > 0 ? measured.wait_s + (read + written) / measured.bytes_per_s : disk_s;
  Cost cost{.seconds = std::max(alone_s, core_s) + speeds.op_overhead_s, .use = {}};
  const double kernel_s = (read + written) * speeds.spill_kernel_s;
  const double lost_s = by == Worker::lane ? core_s : kernel_s + (core_s - kernel_s) / speeds.cores;
  cost.use = {core_use(lost_s, cost.seconds), memory_s / cost.seconds, std::min(1.0, disk_s / cost.seconds)};
  return cost;
}

Cost copy_cost(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.device_bandwidth > 0);
  const double memory_s = 2 * bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = std::max(bytes / speeds.device_bandwidth, core_s) + speeds.op_overhead_s, .use = {}};
  cost.use = {core_use(core_s, cost.seconds), memory_s / cost.seconds, 0};
  return cost;
}

Cost exchange_cost(const MachineSpeeds& speeds, double bytes) {
  const double memory_s = bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = core_s + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) cost.use = {core_use(core_s, cost.seconds), memory_s / cost.seconds, 0};
  return cost;
}

}  // namespace megalith
