// Where in its text each token of a pass stands: what learned and rotary positions are looked up by.
#pragma once
#include <cstdint>
#include <vector>

#include "model/pass.h"

namespace megalith {

// One position a token. Positions count from the sequence's start, from the document's where attention stays inside
// documents, and go on after what the cache holds. Where a layer drops tokens, those left keep theirs.
std::vector<int64_t> positions_of(const Pass& pass);

}  // namespace megalith
