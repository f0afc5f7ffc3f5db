// Costs of an embedding for a micro-batch on one rank: the table of tokens and what is added to its rows.
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

struct EmbeddingForm {
  bool learned_positions = false;
  bool norm = false;  // the sum is normalised
};

BlockCosts embedding_facts(const RankSizes& r, const EmbeddingForm& form);

}  // namespace megalith
