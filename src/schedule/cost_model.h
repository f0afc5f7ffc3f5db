// How long an op takes when it runs alone, and which part of the shared resources it uses. Op families compute the cost of
// their ops with these functions.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/schedule.h"

namespace megalith {

enum class Resource : uint8_t { cores, memory, disk, network };
inline constexpr int kResources = 4;
std::string_view name(Resource resource);
// Whether the ranks of a host have it together. Cores are divided between them, and links are measured with all of them.
inline bool is_shared_by_ranks(Resource resource) { return resource == Resource::memory || resource == Resource::disk; }

// Of an op that moves state between memory and the disk tier, alone.
struct TransferSpeed {
  double wait_s = 0;       // however little moves: until the first byte is there and the last is gone
  double bytes_per_s = 0;  // read and written; 0: not tried
};

// Exchanges between ranks along one axis, measured while all groups of the axis exchange.
struct LinkSpeed {
  double latency_s = 0;    // of a call, however little is exchanged
  double bytes_per_s = 0;  // that a rank sends; 0: not known
};
using Links = std::array<LinkSpeed, kAxes>;  // by axis
constexpr Links on_every_axis(LinkSpeed speed) { return {speed, speed, speed, speed, speed}; }

// Sustained speeds of the machine with all cores of a rank at work, as calibration finds them.
struct MachineSpeeds {
  double flops = 0;             // floating-point operations a second in matrix products
  double memory_bandwidth = 0;  // bytes a second that a rank alone reads and writes
  double host_bandwidth = 0;    // and that all cores of the host do together; 0: as much
  double disk_read = 0;         // bytes a second, nothing else on the disk; where checkpoints go
  double disk_write = 0;
  double spill_read = 0;        // of the disk tier, checksums included; 0 where nothing spills
  double spill_write = 0;
  double spill_mixed = 0;       // reads and writes together, as many of the one as of the other, both counted
  double spill_core_s = 0;      // of one core, for a byte moved there: the kernel's work and the checksum,
  double spill_kernel_s = 0;    // and of these the kernel's
  TransferSpeed load, offload_gradient;  // of the ops that move the state of a block, measured as they run
  TransferSpeed load_updated, load_updated_scarce;  // with ample and with scarce staging
  double device_bandwidth = 0;  // bytes a second to the device, and as many from it; 0 without one
  double op_overhead_s = 0;     // of starting an op, its work apart
  double commit_s = 0;          // making a checkpoint durable: syncs and renames
  int32_t cores = 1;            // of a rank
  int32_t host_ranks = 1;       // that share the host's memory and disk
  Links links{};
};

struct Cost {
  double seconds = 0;                    // when alone
  std::array<double, kResources> use{};  // part of each resource in use in that time, 0..1
};

// Bytes that an op moves over the spill disk, and over the link to a device.
struct Traffic {
  int64_t read = 0, written = 0, copied = 0;
};

// The threads that do the work of a transfer besides the kernel's: its lane alone where staging is scarce, else all that
// compute (base/chores.h).
enum class Worker : uint8_t { lane, everyone };

Cost overhead_cost(const MachineSpeeds& speeds);
// All cores: matrix products, then passes over memory, then exchanges, for which one thread works and the others wait.
Cost compute_cost(const MachineSpeeds& speeds, double flop, double touched_bytes, const AxisExchanges& exchanges = {});
Cost compute_cost(const MachineSpeeds& speeds, const BlockWork& work);
// One thread that copies to a staging buffer (a read and a write of memory) and writes that to the checkpoint.
Cost write_cost(const MachineSpeeds& speeds, double bytes);
// One thread that moves bytes between memory and the spill disk and touches some memory besides. `measured`: the speed of
// the whole transfer, if it was measured.
Cost spill_cost(const MachineSpeeds& speeds, const Traffic& traffic, double touched_bytes, Worker by,
                const TransferSpeed& measured = {});
// One thread that copies bytes to or from the device: a read and a write of memory, at the speed of the link.
Cost copy_cost(const MachineSpeeds& speeds, double bytes);
// One thread that reads bytes.
Cost read_cost(const MachineSpeeds& speeds, double bytes);
// One thread that exchanges with other ranks, beside those that compute.
Cost exchange_cost(const MachineSpeeds& speeds, const AxisExchanges& exchanges);

}  // namespace megalith
