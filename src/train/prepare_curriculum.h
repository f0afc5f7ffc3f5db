// The values that a curriculum's filters go by.
#pragma once
#include <vector>

#include "config/config.h"
#include "data/dataset.h"
#include "train/run_directory.h"

namespace megalith {

// UserError where an entry names a file that is not there: told before text is made into tokens, which may take long.
void check_metric_files(const Config& config);

// One for each entry of `curriculum` that filters, from the user's file or from what `megalith analyze` left in the
// run directory, which is made now if it is not there. UserError where a file is of other data.
std::vector<Filter> prepare_filters(const Config& config, const RunDirectory& run, const Dataset& data);

}  // namespace megalith
