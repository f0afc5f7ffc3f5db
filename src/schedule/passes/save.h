// Places the saving of a checkpoint.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// A step that writes the state left by the step before it while it computes: each block goes out on the write lane
// before its update overwrites it, or when its pending update is made, then `commit`.
Schedule with_save(Schedule step);

// Nothing but a save: at the end of a run or on a signal. Its `micros` is 0. With spilled blocks:
// with_save(apply_pending_only(...)).
Schedule save_only(std::vector<BlockFacts> blocks, RankLayout layout = {});

}  // namespace megalith
