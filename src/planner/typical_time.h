// Measures how long work takes on a machine with nothing else to do.
#pragma once
#include <functional>

namespace megalith {

// Returns the median seconds of several calls after a warm-up call. Takes about `budget` seconds, longer if a call is long.
// Time that threads wait for a core does not count. `between` runs before each call and does not count. If measuring takes
// more than a few seconds, the log says that `what` is measured and how long it will take.
double typical_seconds(const char* what, const std::function<void()>& work, double budget,
                       const std::function<void()>& between = {});

}  // namespace megalith
