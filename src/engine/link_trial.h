// Measures how long exchanges between the ranks of a run take, by axis, with the channels and exchanges that the run uses.
#pragma once
#include "engine/process_groups.h"
#include "schedule/cost_model.h"

namespace megalith {

// Collective over all ranks; nothing else may run on them. Takes about a second. All groups of an axis exchange at the same
// time. Returns rank 0's speeds on all ranks, and 0 for axes that the layout does not use.
Links try_links(ProcessGroups& groups);

}  // namespace megalith
