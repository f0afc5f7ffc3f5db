// How long exchanges between the ranks of a run take, by axis: tried with the channels and exchanges that the run will use.
#pragma once
#include "engine/process_groups.h"
#include "schedule/cost_model.h"

namespace megalith {

// Collective over all ranks, on their compute lanes with nothing else to do; about a second. All groups of an axis exchange
// at the same time. Returns rank 0's speeds on all ranks; those of axes that the layout does not have are 0.
Links try_links(ProcessGroups& groups);

}  // namespace megalith
