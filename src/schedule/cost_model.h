// Computes how long an op takes when it runs alone, and which part of the shared resources it uses. Op families compute the
// costs of their ops with these functions.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/schedule.h"

namespace megalith {

enum class Resource : uint8_t { cores, memory, disk, network };
inline constexpr int kResources = 4;
std::string_view name(Resource resource);
// True if the ranks of a host share the resource. Each rank has its own cores. Link speeds are measured while all ranks
// communicate, so they need no sharing.
inline bool is_shared_by_ranks(Resource resource) { return resource == Resource::memory || resource == Resource::disk; }

// The speed of an op that moves state between memory and the disk tier while no other op runs.
struct TransferSpeed {
  double wait_s = 0;       // fixed time of a transfer: until the first byte arrives and until the last is written
  double bytes_per_s = 0;  // bytes read plus bytes written per second; 0 if not measured
};

// Exchanges between ranks along one axis, measured while all groups of the axis exchange.
struct LinkSpeed {
  double latency_s = 0;    // fixed time of a call
  double bytes_per_s = 0;  // bytes per second that a rank sends; 0 if not known
};
using Links = std::array<LinkSpeed, kAxes>;  // by axis
constexpr Links on_every_axis(LinkSpeed speed) { return {speed, speed, speed, speed, speed}; }

// Sustained speeds of the machine while all cores of a rank work. Calibration measures them.
struct MachineSpeeds {
  double flops = 0;             // floating-point operations per second in matrix products
  double memory_bandwidth = 0;  // bytes per second that one rank alone reads and writes
  double host_bandwidth = 0;    // the same for all cores of the host together; 0: the same value
  double disk_read = 0;         // bytes per second of the checkpoint disk while nothing else uses it
  double disk_write = 0;
  double spill_read = 0;        // bytes per second of the disk tier, with checksums; 0 if nothing is spilled
  double spill_write = 0;
  double spill_mixed = 0;       // reads plus writes, while equal amounts are read and written at the same time
  double spill_core_s = 0;      // time of one core per byte of the disk tier: the kernel's work and the checksum
  double spill_kernel_s = 0;    // the kernel's part of spill_core_s
  // Speeds of the ops that move the state of a block, measured with the code of these ops.
  TransferSpeed load, offload_gradient;
  TransferSpeed load_updated, load_updated_scarce;  // with ample and with scarce staging
  double device_bandwidth = 0;  // bytes per second in each direction; 0 without a device
  double op_overhead_s = 0;     // time to start an op, without its work
  double commit_s = 0;          // time to make a checkpoint durable: syncs and renames
  int32_t cores = 1;            // cores of a rank
  int32_t host_ranks = 1;       // ranks that share the host's memory and disk
  Links links{};
};

struct Cost {
  double seconds = 0;                    // if the op runs alone
  std::array<double, kResources> use{};  // part of each resource that the op uses in that time, 0..1
};

// Bytes that an op moves over the spill disk, and over the link to a device.
struct Traffic {
  int64_t read = 0, written = 0, copied = 0;
};

// The threads that do a transfer's work outside the kernel. With scarce staging it is the lane's thread alone. Otherwise it
// is all computing threads (base/chores.h).
enum class Worker : uint8_t { lane, everyone };

Cost overhead_cost(const MachineSpeeds& speeds);
// Work of all cores: matrix products, then passes over memory, then exchanges. During an exchange one thread works and the
// others wait.
Cost compute_cost(const MachineSpeeds& speeds, double flop, double touched_bytes, const AxisExchanges& exchanges = {});
Cost compute_cost(const MachineSpeeds& speeds, const BlockWork& work);
// One thread copies to a staging buffer (a read and a write of memory) and writes the buffer to the checkpoint.
Cost write_cost(const MachineSpeeds& speeds, double bytes);
// One thread moves `traffic` between memory and the spill disk, and accesses another `touched_bytes` of memory.
// `measured` is the speed of the whole transfer, if it was measured.
Cost spill_cost(const MachineSpeeds& speeds, const Traffic& traffic, double touched_bytes, Worker by,
                const TransferSpeed& measured = {});
// One thread copies bytes to or from the device: a read and a write of memory, at the speed of the link.
Cost copy_cost(const MachineSpeeds& speeds, double bytes);
// One thread reads bytes of memory.
Cost read_cost(const MachineSpeeds& speeds, double bytes);
// One thread exchanges data with other ranks while the computing threads continue.
Cost exchange_cost(const MachineSpeeds& speeds, const AxisExchanges& exchanges);

}  // namespace megalith
