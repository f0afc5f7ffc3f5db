// The keys of `token_dropping`.
#pragma once
#include <vector>

#include "config/options.h"

namespace megalith {

std::vector<Option> token_dropping_options();

}  // namespace megalith
