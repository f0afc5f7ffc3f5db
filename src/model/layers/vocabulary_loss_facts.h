// Costs of a head for a micro-batch on one rank: the loss over the vocabulary and what comes before it.
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// Returns how many rows of logits exist at a time. It depends only on the model, so results do not depend on the memory
// budget.
int64_t vocabulary_chunk_rows(int64_t vocab, int64_t hidden);

struct HeadForm {
  bool transform = false;   // a dense layer and GELU before the last norm (BERT)
  bool pools_layer = false; // a representation is pooled from the last layer, not from its norm
};

BlockCosts head_facts(const RankSizes& r, const HeadForm& form = {});

}  // namespace megalith
