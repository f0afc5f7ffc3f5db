// How long an op takes when it runs alone, and what it uses of the resources that lanes share.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class Resource : uint8_t { cores, memory, disk };
inline constexpr int kResources = 3;
std::string_view name(Resource resource);

// Of an op that moves state between memory and the disk tier, alone.
struct TransferSpeed {
  double wait_s = 0;       // however little moves: until the first byte is there and the last is gone
  double bytes_per_s = 0;  // read and written; 0: not tried
};

// Sustained speeds of the machine with all its cores at work, as calibration finds them.
struct MachineSpeeds {
  double flops = 0;             // floating-point operations a second in matrix products
  double memory_bandwidth = 0;  // bytes a second
  double disk_read = 0;         // bytes a second, nothing else on the disk; where checkpoints go
  double disk_write = 0;
  double spill_read = 0;        // of the disk tier, checksums included; 0 where nothing spills
  double spill_write = 0;
  double spill_mixed = 0;       // reads and writes together, as many of the one as of the other, both counted
  double spill_core_s = 0;      // of one core, for a byte moved there: the kernel's work and the checksum,
  double spill_kernel_s = 0;    // and of these the kernel's
  TransferSpeed fetch, stow;    // of the ops that move a block's state, tried as they are
  TransferSpeed renew, renew_scarce;  // with ample and with scarce staging
  double device_bandwidth = 0;  // bytes a second to the device, and as many from it; 0 without one
  double op_overhead_s = 0;     // of starting an op, its work apart
  double commit_s = 0;          // making a checkpoint durable: syncs and renames
  int32_t cores = 1;
};

struct Cost {
  double seconds = 0;                    // when alone
  std::array<double, kResources> share{};  // part of each resource in use in that time, 0..1
};

// One cost an op, from the blocks' facts. Reads and writes share one disk; a lane other than compute and
// update keeps one core at work at most.
std::vector<Cost> predict_costs(const Schedule& schedule, const MachineSpeeds& speeds);

}  // namespace megalith
