// How long a piece of work takes on a machine with nothing else to do.
#pragma once
#include <functional>

namespace megalith {

// Median of several calls, after one to warm up: about `budget` seconds, longer if a call is long. Time in which threads stood
// ready without a core does not count. `between` is called before each, and not counted. If it takes more than a
// few seconds, the log says that `what` is measured, and for how long.
double typical_seconds(const char* what, const std::function<void()>& work, double budget,
                       const std::function<void()>& between = {});

}  // namespace megalith
