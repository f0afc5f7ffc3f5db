// The keys of `data`.
#pragma once
#include <vector>

#include "config/options.h"

namespace megalith {

std::vector<Option> data_options();

}  // namespace megalith
