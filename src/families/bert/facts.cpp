#include "families/list.h"
#include "families/rank_sizes.h"
#include "model/layer_facts.h"
#include "model/layers/table_facts.h"
#include "model/layers/vocabulary_loss_facts.h"

namespace megalith::bert {

BlockCosts facts(const BlockSpec& block, const RankSizes& sizes) {
  switch (block.kind) {
    case BlockKind::embedding: return embedding_facts(sizes, {.learned_positions = true, .norm = true});
    case BlockKind::layer: return layer_facts(sizes, {.half = gelu_facts(sizes), .post_norm = true});
    case BlockKind::head: break;
  }
  return head_facts(sizes, {.transform = true, .pools_layer = true});
}

}  // namespace megalith::bert
