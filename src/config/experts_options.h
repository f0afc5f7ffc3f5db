// The keys of `model.experts`.
#pragma once
#include <vector>

#include "config/check.h"
#include "config/options.h"

namespace megalith {

std::vector<Option> experts_options();

// Throws UserError that names the key if the settings of experts are not possible.
void check_experts(const Config& config, const ModelShape& shape, const WhereOf& where);

}  // namespace megalith
