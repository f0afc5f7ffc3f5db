// Costs of the experts of a layer for a micro-batch: the feed-forward half of a layer that routes tokens.
#pragma once
#include "model/layers/feed_forward_facts.h"

namespace megalith {

// If experts are spread over ranks, the work counts the average number of received rows. Memory counts the maximum.
HalfFacts experts_facts(const RankSizes& r);

}  // namespace megalith
