// Costs of a head that makes a vector for each sequence, and of the loss that compares all sequences of a batch.
#pragma once
#include "families/rank_sizes.h"
#include "schedule/block_facts.h"

namespace megalith {

inline constexpr int64_t kAnchorsAtOnce = 256;  // compared with all candidates at once

// `norm`: the outputs of the last layer are normed first.
BlockCosts representation_facts(const RankSizes& r, bool norm);

}  // namespace megalith
