// Settings that are part of the interface but not yet of this version are refused by name at the start, never
// ignored. Whoever builds one of them deletes its lines in unavailable.cpp.
#pragma once
#include "config/check.h"
#include "config/config.h"

namespace megalith {

void refuse_unavailable(const Config& config, const WhereOf& where = {});

}  // namespace megalith
