// Adds the ops that load, gather, upload, evict and offload the state of blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Returns the step with the state of some blocks on disk, or sliced over the ranks that hold them (ZeRO).
// - A use is a run of ops on the compute lane that need the same blocks.
// - A block whose parameters do not stay (on disk, or sliced at ZeRO stage 3) is loaded at most `window` uses early. With 1,
//   it is loaded only when its use is next. It is evicted if it is not needed again within the window.
// - The first load of a step is load_updated. It applies the update that the previous step left pending.
// - Parameters of a sliced block are gathered from all slices: at ZeRO stages 1 and 2 once per step, at stage 3 per use.
// - Gradients of such blocks exist from their first contribution to their norm or sum.
// Works on any compute order. One load serves all ops of a use, so by_block moves the fewest bytes.
// With a device, the parameters of every block are uploaded for each interval, and `window` limits device memory. State on
// disk is loaded into host memory up to `ahead` uses before it may be uploaded. At most two gradients are on the device, in
// addition to those on their way to the disk.
Schedule with_residency(Schedule step, std::vector<Placement> placement, int32_t window, int32_t ahead = 0);

// Returns a step that only applies the pending updates of spilled blocks. A save outside of a training step needs it first.
Schedule apply_pending_only(std::vector<BlockFacts> blocks, std::vector<Placement> placement, RankLayout layout = {});

}  // namespace megalith
