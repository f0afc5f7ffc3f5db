#include "families/facts.h"

#include <algorithm>

#include "families/family.h"
#include "model/token_dropping_facts.h"

namespace megalith {
namespace {

// Returns the costs of a micro-batch.
BlockCosts costs_of(const BlockSpec& spec, const RankSizes& sizes) {
  const Family& family = *sizes.s.family;
  BlockCosts f = family.facts(spec, sizes);
  if (spec.kind != BlockKind::layer) return f;
  f.validation_bytes = f.saved_bytes + f.workspace_bytes;
  if (sizes.m.kept == 0 || !std::ranges::binary_search(sizes.m.dropping_layers, spec.layer)) return f;
  BlockCosts dropping = token_dropping_facts(spec, sizes);
  dropping.validation_bytes = f.validation_bytes;
  return dropping;
}

BlockIdentity identity_of(const BlockSpec& spec, const RankSizes& sizes) {
  BlockIdentity block{.name = spec.name, .kind = spec.kind};
  for (const ParameterSpec& p : spec.parameters) {
    block.parameters += p.size();
    if (p.of_expert && sizes.mesh.size(Axis::expert) > 1) block.expert_parameters += p.size();
  }
  block.compute_copy_bytes = sizes.e == 4 ? 0 : sizes.e * computing_elements(spec, sizes.e);
  if (spec.kind != BlockKind::head) return block;
  if (sizes.s.ties_table()) block.tied_to = 0;
  block.scores_batch = sizes.s.head == HeadKind::representation;
  return block;
}

}  // namespace

std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing, const Mesh& mesh) {
  const int64_t e = precision == Precision::fp32 ? 4 : 2;
  const RankSizes sizes{shape, mesh, micro, e, {e, packing}};
  std::vector<BlockFacts> facts;
  for (const BlockSpec& spec : list_blocks(shape, mesh))
    facts.push_back({identity_of(spec, sizes), costs_of(spec, sizes), BlockStorage{}});
  return facts;
}

}  // namespace megalith
