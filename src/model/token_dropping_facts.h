// What a layer that drops tokens costs a micro-batch on one rank.
#pragma once
#include "families/block_spec.h"
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// `sizes` are those of all tokens; sizes.m.kept of each sequence go through the layer.
BlockCosts token_dropping_facts(const BlockSpec& spec, const RankSizes& sizes);

}  // namespace megalith
