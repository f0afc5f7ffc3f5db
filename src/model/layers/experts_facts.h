// What the experts of a layer cost a micro-batch: the feed-forward half of a layer that routes tokens.
#pragma once
#include "model/layers/feed_forward_facts.h"

namespace megalith {

// Where experts are spread over ranks, work is what comes on average and memory what may come at most.
HalfFacts experts_facts(const RankSizes& r);

}  // namespace megalith
