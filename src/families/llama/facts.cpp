#include "families/list.h"
#include "families/rank_sizes.h"
#include "model/layer_facts.h"
#include "model/layers/experts_facts.h"
#include "model/layers/table_facts.h"
#include "model/layers/vocabulary_loss_facts.h"

namespace megalith::llama {

BlockCosts facts(const BlockSpec& block, const RankSizes& sizes) {
  switch (block.kind) {
    case BlockKind::embedding: return embedding_facts(sizes, {});
    case BlockKind::layer:
      if (sizes.s.experts.in_layer(block.layer)) return layer_facts(sizes, {.half = experts_facts(sizes)});
      return layer_facts(sizes, {.half = swiglu_facts(sizes)});
    case BlockKind::head: break;
  }
  return head_facts(sizes);
}

}  // namespace megalith::llama
