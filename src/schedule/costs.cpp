#include "schedule/costs.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/residency_pass.h"

namespace megalith {
namespace {

constexpr double kBytesPerFloat = 4;

// A lane of one thread takes its time from one core. Those who compute work in step, each on its part, and wait for the
// one that shares its core: what the lane takes all of them lose, however many they are.
double core_share(double core_s, double seconds) { return core_s / seconds; }

// Computing with all cores: matrix products, then passes over memory.
Cost compute(const MachineSpeeds& speeds, double flop, double touched_bytes) {
  const double memory_s = touched_bytes / speeds.memory_bandwidth;
  const double work_s = flop / speeds.flops + memory_s;
  Cost cost{.seconds = work_s + speeds.op_overhead_s, .share = {}};
  if (cost.seconds > 0) cost.share = {work_s / cost.seconds, memory_s / cost.seconds, 0};
  return cost;
}

// One thread that copies to a staging buffer (a read and a write of memory) and writes that out.
Cost write_out(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.disk_write > 0 || bytes == 0);
  const double disk_s = bytes == 0 ? 0 : bytes / speeds.disk_write;
  const double copy_s = 2 * bytes / speeds.memory_bandwidth;
  Cost cost{.seconds = std::max(disk_s, copy_s) + speeds.op_overhead_s, .share = {}};
  if (cost.seconds > 0) {
    cost.share = {core_share(copy_s, cost.seconds), copy_s / cost.seconds, disk_s / cost.seconds};
  }
  return cost;
}

// One thread that moves bytes straight between memory and the spill disk, and touches some of memory besides.
// Where staging is scarce it does all of that itself; else those who compute take over what is not the kernel's
// (base/chores.h), and all of them share it.
enum class Worker : uint8_t { lane, everyone };
Cost stream(const MachineSpeeds& speeds, const DiskTraffic& traffic, double touched_bytes, Worker by,
            const TransferSpeed& tried = {}) {
  const auto read = static_cast<double>(traffic.read), written = static_cast<double>(traffic.written);
  if (read + written == 0) return {.seconds = speeds.op_overhead_s, .share = {}};
  MEGALITH_ASSERT(speeds.spill_read > 0 && speeds.spill_write > 0 && speeds.spill_mixed > 0);
  const double disk_s = read > 0 && written > 0 ? (read + written) / speeds.spill_mixed
                        : read > 0              ? read / speeds.spill_read
                                                : written / speeds.spill_write;
  const double memory_s = (read + written + touched_bytes) / speeds.memory_bandwidth;
  // One core gets its part of the memory's bandwidth.
  const double core_s = (read + written) * speeds.spill_core_s + touched_bytes / speeds.memory_bandwidth * speeds.cores;
  const double alone_s = tried.bytes_per_s > 0 ? tried.wait_s + (read + written) / tried.bytes_per_s : disk_s;
  Cost cost{.seconds = std::max(alone_s, core_s) + speeds.op_overhead_s, .share = {}};
  const double kernel_s = (read + written) * speeds.spill_kernel_s;
  const double lost_s = by == Worker::lane ? core_s : kernel_s + (core_s - kernel_s) / speeds.cores;
  cost.share = {core_share(lost_s, cost.seconds), memory_s / cost.seconds, std::min(1.0, disk_s / cost.seconds)};
  return cost;
}

// One thread that copies bytes to or from the device: a read and a write of memory, at the pace of the way between.
Cost copy_over(const MachineSpeeds& speeds, double bytes) {
  MEGALITH_ASSERT(speeds.device_bandwidth > 0);
  const double memory_s = 2 * bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = std::max(bytes / speeds.device_bandwidth, core_s) + speeds.op_overhead_s, .share = {}};
  cost.share = {core_share(core_s, cost.seconds), memory_s / cost.seconds, 0};
  return cost;
}

// One thread that exchanges bytes with other ranks through the host's memory.
Cost exchange(const MachineSpeeds& speeds, double bytes) {
  const double memory_s = bytes / speeds.memory_bandwidth, core_s = memory_s * speeds.cores;
  Cost cost{.seconds = core_s + speeds.op_overhead_s, .share = {}};
  if (cost.seconds > 0) cost.share = {core_share(core_s, cost.seconds), memory_s / cost.seconds, 0};
  return cost;
}

Cost predict(const Schedule& schedule, const Op& op, const MachineSpeeds& speeds) {
  static const BlockFacts none;
  const BlockFacts& block = op.block == kNoBlock ? none : schedule.blocks[op.block];
  const double whole_bytes = kBytesPerFloat * static_cast<double>(block.parameters);
  const double parameter_bytes =
      op.block == kNoBlock ? 0 : kBytesPerFloat * static_cast<double>(schedule.slice_elements(op.block));
  const double state_bytes = op.block == kNoBlock ? 0 : static_cast<double>(schedule.optimizer_slice_bytes(op.block));
  // What is exchanged of parameters or their gradients: the experts' among fewer ranks. `part`: bytes of one, by ranks.
  const Sharding& sharding = schedule.division.sharding;
  const auto among_replicas = [&](const auto& part) {
    const double expert_bytes = kBytesPerFloat * static_cast<double>(block.expert_parameters);
    return part(whole_bytes - expert_bytes, sharding.replicas) + part(expert_bytes, sharding.expert_replicas());
  };
  const auto forward_bytes = static_cast<double>(block.forward_touched_bytes);
  const auto backward_bytes = static_cast<double>(block.backward_touched_bytes);
  switch (op.kind) {
    case OpKind::forward: return compute(speeds, block.forward_flop, forward_bytes);
    case OpKind::recompute: {
      const ForwardPart again = block.again(schedule.keeps(op.block), schedule.output_again(op.block));
      return compute(speeds, again.flop, static_cast<double>(again.touched_bytes));
    }
    case OpKind::loss:
      return compute(speeds, block.forward_flop + block.backward_flop, forward_bytes + backward_bytes);
    case OpKind::backward:
      return compute(speeds, block.backward_flop - (schedule.defers(op.block) ? block.weight_flop : 0), backward_bytes);
    case OpKind::weigh: return compute(speeds, block.weight_flop, 0);
    case OpKind::fold:  // rows are read, the table's rows read and written
      return compute(speeds, 0, 3.0 * static_cast<double>(block.aside_bytes) * schedule.micros);
    case OpKind::norm:
      return op.lane == Lane::compute ? compute(speeds, 0, parameter_bytes) : exchange(speeds, parameter_bytes);
    case OpKind::update:  // parameters, gradient and state are read and written
      return compute(speeds, 0,
                     4 * parameter_bytes + 2 * state_bytes + static_cast<double>(block.compute_copy_bytes));
    case OpKind::renew:
      return stream(speeds, disk_traffic(schedule, op), 4 * parameter_bytes + 2 * state_bytes,
                    block.streams_amply ? Worker::everyone : Worker::lane,
                    block.streams_amply ? speeds.renew : speeds.renew_scarce);
    case OpKind::fetch: return stream(speeds, disk_traffic(schedule, op), 0, Worker::everyone, speeds.fetch);
    case OpKind::stow: return stream(speeds, disk_traffic(schedule, op), 0, Worker::everyone, speeds.stow);
    case OpKind::park:
    case OpKind::unpark: {  // copied to or from staging
      if (schedule.division.device) return copy_over(speeds, static_cast<double>(copied_bytes(schedule, op)));
      const DiskTraffic traffic = disk_traffic(schedule, op);
      return stream(speeds, traffic, 2.0 * static_cast<double>(traffic.read + traffic.written), Worker::lane);
    }
    case OpKind::upload:
    case OpKind::download: return copy_over(speeds, static_cast<double>(copied_bytes(schedule, op)));
    case OpKind::clear: return compute(speeds, 0, whole_bytes);
    // Each rank adds up its part of all ranks' gradients and, where they stay whole, writes the sum to all.
    case OpKind::reduce:
      return exchange(speeds, among_replicas([&](double bytes, double ranks) {
                        if (ranks == 1) return 0.0;  // norms and biases over the tensor axis
                        return bytes * (schedule.slices() ? 1 + 1 / ranks : 2);
                      }));
    case OpKind::gather:
      return exchange(speeds, among_replicas([](double bytes, double ranks) { return 2 * bytes * (1 - 1 / ranks); }));
    case OpKind::receive:
    case OpKind::receive_back: return exchange(speeds, 2 * static_cast<double>(block.output_bytes));
    case OpKind::lend:
    case OpKind::collect: return exchange(speeds, 2 * whole_bytes);
    case OpKind::save: return write_out(speeds, parameter_bytes + state_bytes);
    case OpKind::commit: return {.seconds = speeds.commit_s + speeds.op_overhead_s, .share = {}};
    case OpKind::count:
    case OpKind::total:
    case OpKind::send:  // the receiver copies
    case OpKind::send_back:
    case OpKind::drop:
    case OpKind::clip: return {.seconds = speeds.op_overhead_s, .share = {}};
  }
  return {};
}

}  // namespace

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::cores: return "cores";
    case Resource::memory: return "memory bandwidth";
    case Resource::disk: return "disk";
  }
  return "unknown resource";
}

std::vector<Cost> predict_costs(const Schedule& schedule, const MachineSpeeds& speeds) {
  MEGALITH_ASSERT(speeds.flops > 0 && speeds.memory_bandwidth > 0 && speeds.cores >= 1);
  std::vector<Cost> costs;
  costs.reserve(schedule.ops.size());
  for (const Op& op : schedule.ops) costs.push_back(predict(schedule, op, speeds));
  return costs;
}

}  // namespace megalith
