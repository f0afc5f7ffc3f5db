// The keys of `model.experts`.
#pragma once
#include <vector>

#include "config/check.h"
#include "config/options.h"

namespace megalith {

std::vector<Option> experts_options();

// Refuses experts that cannot be, with the key that says so.
void check_experts(const Config& config, const ModelShape& shape, const WhereOf& where);

}  // namespace megalith
