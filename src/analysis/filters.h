// The difficulties that the filters of a curriculum use.
#pragma once
#include <vector>

#include "data/dataset.h"
#include "run/run.h"

namespace megalith {

// Returns one filter for each entry of `curriculum` that filters. Its values are from the user's file, or from the file that
// `megalith analyze` left in the run directory. If neither exists, the values are computed now. Throws UserError if a file
// belongs to other data. For filters by loss, the run directory records which file of losses belongs to each model. A run
// that has `begun` uses these files even if the model has changed or no longer exists.
std::vector<Filter> prepare_filters(const Run& run, const RunDirectory& directory, const Dataset& data, bool begun);

}  // namespace megalith
