// The keys of `train`.
#pragma once
#include <vector>

#include "config/options.h"

namespace megalith {

std::vector<Option> train_options();

}  // namespace megalith
