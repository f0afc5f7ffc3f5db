// Where in its text each token of a pass stands: what learned and rotary positions are looked up by.
#pragma once
#include <cstdint>
#include <vector>

#include "model/pass.h"

namespace megalith {

// One position a token that is here. Positions count from the sequence's start, from the document's where attention stays
// inside documents, and go on after what the cache holds. Where a layer drops tokens, those left keep theirs.
std::vector<int64_t> positions_of(const Pass& pass);
// The same of whole sequences, however much of them is here.
std::vector<int64_t> positions_of_whole(const Pass& pass);

}  // namespace megalith
