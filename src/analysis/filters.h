// The values that a curriculum's filters go by.
#pragma once
#include <vector>

#include "data/dataset.h"
#include "run/run.h"

namespace megalith {

// One for each entry of `curriculum` that filters, from the user's file or from what `megalith analyze` left in the
// run directory, which is made now if it is not there. UserError where a file is of other data. What stands for each
// checkpoint is noted there: a run that has `begun` goes by it even if the checkpoint has changed or gone.
std::vector<Filter> prepare_filters(const Run& run, const RunDirectory& directory, const Dataset& data, bool begun);

}  // namespace megalith
