// Costs of a transformer layer for a micro-batch on one rank: norms, attention, additions and a feed-forward half.
#pragma once
#include "model/layers/feed_forward_facts.h"

namespace megalith {

struct LayerForm {
  HalfFacts half;          // feed-forward
  bool post_norm = false;  // norms come after each half (BERT), otherwise before it
};

BlockCosts layer_facts(const RankSizes& r, const LayerForm& form);

}  // namespace megalith
