// The values that a curriculum's filters go by.
#pragma once
#include <vector>

#include "config/config.h"
#include "data/dataset.h"
#include "train/run_directory.h"

namespace megalith {

// UserError where an entry's metric is unknown, or names a file or a checkpoint that is not there: told before text is made
// into tokens, which may take long.
void check_curriculum(const Config& config);

// One for each entry of `curriculum` that filters, from the user's file or from what `megalith analyze` left in the
// run directory, which is made now if it is not there. UserError where a file is of other data. What stands for each
// checkpoint is noted there: a run that has `begun` goes by it even if the checkpoint has changed or gone.
std::vector<Filter> prepare_filters(const Config& config, const RunDirectory& run, const Dataset& data, bool begun);

}  // namespace megalith
