// The keys that change where and how a run computes but not its result: `parallel`, `memory`, `checkpoint`.
#pragma once
#include <vector>

#include "config/options.h"

namespace megalith {

std::vector<Option> layout_options();

}  // namespace megalith
