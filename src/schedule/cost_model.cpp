#include "schedule/cost_model.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {
namespace {

// The thread of a lane takes its time from one core. The computing threads run in step, so all of them wait for the thread
// on that core. All cores lose the time that the lane takes, for any number of cores.
double core_use(double core_s, double seconds) { return core_s / seconds; }

// The part of the host's memory bandwidth that a rank uses. The rank alone would access memory for `memory_s` of the
// op's `seconds`.
double memory_use(const MachineSpeeds& speeds, double memory_s, double seconds) {
  const double part = std::max(1.0, speeds.host_bandwidth / speeds.memory_bandwidth);
  return memory_s / part / seconds;
}

struct ExchangeTime {
  double calls_s = 0, transfer_s = 0, memory_s = 0;
  double seconds() const { return calls_s + transfer_s; }
};

ExchangeTime time_of(const MachineSpeeds& speeds, const AxisExchanges& exchanges) {
  ExchangeTime time;
  for (size_t axis = 0; axis < kAxes; axis++) {
    const ExchangeFacts& it = exchanges.by_axis[axis];
    const LinkSpeed& link = speeds.links[axis];
    if (it.calls == 0 && it.bytes == 0) continue;
    MEGALITH_ASSERT(link.bytes_per_s > 0, "no speed for the {} axis", name_of(static_cast<Axis>(axis)));
    time.calls_s += static_cast<double>(it.calls) * link.latency_s;
    time.transfer_s += static_cast<double>(it.bytes) / link.bytes_per_s;
    time.memory_s += 2 * static_cast<double>(it.bytes) / speeds.memory_bandwidth;  // read and written
  }
  return time;
}

// The part of the host's memory bandwidth that an exchange uses. All ranks of the host were measured at the same time. So
// the result is limited: the ranks must not slow each other down a second time.
double memory_use(const MachineSpeeds& speeds, const ExchangeTime& time, double seconds) {
  if (time.transfer_s == 0) return 0;
  const double together = time.transfer_s / speeds.host_ranks / seconds;
  return std::min(together, memory_use(speeds, time.memory_s, seconds));
}

}  // namespace

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::cores: return "cores";
    case Resource::memory: return "memory bandwidth";
    case Resource::disk: return "disk";
    case Resource::network: return "network";
  }
  return "unknown resource";
}

Cost overhead_cost(const MachineSpeeds& speeds) { return {.seconds = speeds.op_overhead_s, .use = {}}; }

Cost compute_cost(const MachineSpeeds& speeds, double flop, double touched_bytes, const AxisExchanges& exchanges) {
  const double memory_s = touched_bytes / speeds.memory_bandwidth;
  const double work_s = flop / speeds.flops + memory_s;
  const ExchangeTime exchange = time_of(speeds, exchanges);
  Cost cost{.seconds = work_s + exchange.seconds() + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) {
    cost.use = {(work_s + exchange.seconds() / speeds.cores) / cost.seconds,
                memory_use(speeds, memory_s, cost.seconds) + memory_use(speeds, exchange, cost.seconds), 0,
                exchange.transfer_s / cost.seconds};
  }
  return cost;
}

Cost compute_cost(const MachineSpeeds& speeds, const BlockWork& work) {
  return compute_cost(speeds, work.flop, static_cast<double>(work.touched_bytes), work.exchanges);
}

Cost write_cost(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.disk_write > 0 || bytes == 0);
  const double disk_s = bytes == 0 ? 0 : bytes / speeds.disk_write;
  const double copy_s = 2 * bytes / speeds.memory_bandwidth;
  Cost cost{.seconds = std::max(disk_s, copy_s) + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) {
    cost.use = {core_use(copy_s, cost.seconds), memory_use(speeds, copy_s, cost.seconds), disk_s / cost.seconds};
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
  // One core gets 1 / cores of the memory bandwidth.
  const double core_s = (read + written) * speeds.spill_core_s + touched_bytes / speeds.memory_bandwidth * speeds.cores;
  const double alone_s = measured.bytes_per_s > 0 ? measured.wait_s + (read + written) / measured.bytes_per_s : disk_s;
  Cost cost{.seconds = std::max(alone_s, core_s) + speeds.op_overhead_s, .use = {}};
  const double kernel_s = (read + written) * speeds.spill_kernel_s;
  const double lost_s = by == Worker::lane ? core_s : kernel_s + (core_s - kernel_s) / speeds.cores;
  cost.use = {core_use(lost_s, cost.seconds), memory_use(speeds, memory_s, cost.seconds),
              std::min(1.0, disk_s / cost.seconds)};
  return cost;
}

Cost copy_cost(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.device_bandwidth > 0);
  const double memory_s = 2 * bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = std::max(bytes / speeds.device_bandwidth, core_s) + speeds.op_overhead_s, .use = {}};
  cost.use = {core_use(core_s, cost.seconds), memory_use(speeds, memory_s, cost.seconds)};
  return cost;
}

Cost read_cost(const MachineSpeeds& speeds, double bytes) {
  const double memory_s = bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = core_s + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) cost.use = {core_use(core_s, cost.seconds), memory_use(speeds, memory_s, cost.seconds)};
  return cost;
}

Cost exchange_cost(const MachineSpeeds& speeds, const AxisExchanges& exchanges) {
  const ExchangeTime time = time_of(speeds, exchanges);
  Cost cost{.seconds = time.seconds() + speeds.op_overhead_s, .use = {}};
  if (cost.seconds > 0) {
    cost.use = {core_use(time.transfer_s, cost.seconds), memory_use(speeds, time, cost.seconds), 0,
                time.transfer_s / cost.seconds};
  }
  return cost;
}

}  // namespace megalith
