#include "families/list.h"
#include "families/rank_sizes.h"
#include "model/layer_facts.h"
#include "model/layers/table_facts.h"
#include "model/layers/vocabulary_loss_facts.h"

namespace megalith::gpt2 {

BlockCosts facts(const BlockSpec& block, const RankSizes& sizes) {
  switch (block.kind) {
    case BlockKind::embedding: return embedding_facts(sizes, {.learned_positions = true});
    case BlockKind::layer: return layer_facts(sizes, {.half = gelu_facts(sizes)});
    case BlockKind::head: break;
  }
  return head_facts(sizes);
}

}  // namespace megalith::gpt2
