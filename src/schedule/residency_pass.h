// Places what a step moves between memory and disk, between the host and a device, and between the slices of a block and
// its whole.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// The step with the state of some blocks on disk, or sliced over the ranks that hold them (schedule.h, Sharding). A block
// whose parameters are away (on disk, or in the slices of ZeRO stage 3) is brought in ahead of its use,
// at most `window` turns early (1: only when its turn has come), and dropped when it is not needed again within the
// window; a turn is a run of ops on the compute lane that need the same spilled block. Its first coming is `renew`,
// which makes the update that the step before left pending. A sliced block's parameters are gathered from all its
// slices; at stages 1 and 2 once a step, at stage 3 each time. Gradients of such blocks exist from their first
// contribution to their norm or sum, then go out. Works on any compute order; one fetch serves all ops of a turn, so
// by_block is the order that moves least.
// With a device (schedule.h, Division) the parameters of every block are uploaded for each stay, and the window is the
// device's; what is on disk comes into the host's memory up to `ahead` turns before it may be uploaded. Gradients of two
// blocks at most are on the device, those on their way to the disk apart.
Schedule with_residency(Schedule step, std::vector<Placement> placement, int32_t window, int32_t ahead = 0);

// Nothing but the pending updates of spilled blocks: what must come before a save that no step follows.
Schedule renew_only(std::vector<BlockFacts> blocks, std::vector<Placement> placement, Division division = {});

// Bytes that an op copies to the device, or from it; 0 for all others.
int64_t copied_bytes(const Schedule& schedule, const Op& op);

// Bytes that a step moves over the disk.
struct DiskTraffic {
  int64_t read = 0, written = 0;
};
DiskTraffic disk_traffic(const Schedule& schedule);
DiskTraffic disk_traffic(const Schedule& schedule, const Op& op);  // of a step in full swing: every update is pending

}  // namespace megalith
