// Adds the ops that save a checkpoint.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Returns a step that computes and, at the same time, saves the state that the previous step left. The write lane saves each
// block before its update overwrites the block. A spilled block is saved after its pending update. Then `commit` follows.
Schedule with_save(Schedule step);

// Returns a step that only saves, for the end of a run or a signal. Its `micros` is 0. If blocks are spilled, use
// with_save(apply_pending_only(...)) instead.
Schedule save_only(std::vector<BlockFacts> blocks, RankLayout layout = {});

}  // namespace megalith
