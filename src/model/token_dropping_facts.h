// Costs of a layer that drops tokens, for a micro-batch on one rank.
#pragma once
#include "families/block_spec.h"
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// `sizes` count all tokens. sizes.m.kept tokens of each sequence go through the layer.
BlockCosts token_dropping_facts(const BlockSpec& spec, const RankSizes& sizes);

}  // namespace megalith
