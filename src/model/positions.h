// The position of each token of a pass in its text. Learned and rotary positions are looked up with it.
#pragma once
#include <cstdint>
#include <vector>

#include "model/pass.h"

namespace megalith {

// Returns the position of each token on this rank. Positions count from the start of the sequence, or of the document if
// attention stays inside documents. With a cache, they continue after the cached tokens. If a layer drops tokens, the kept
// tokens keep their positions.
std::vector<int64_t> positions_of(const Pass& pass);
// The same for whole sequences, even if only a part of them is on this rank.
std::vector<int64_t> positions_of_whole(const Pass& pass);

}  // namespace megalith
