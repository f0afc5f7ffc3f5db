#include "families/facts.h"

#include <algorithm>

#include "families/family.h"
#include "model/token_dropping_facts.h"

namespace megalith {
namespace {

// The costs of a micro-batch.
BlockFacts costs_of(const BlockSpec& spec, const RankSizes& sizes) {
  const Family& family = *sizes.s.family;
  BlockFacts f = family.facts(spec, sizes);
  if (spec.kind != BlockKind::layer) return f;
  f.validation_bytes = f.saved_bytes + f.workspace_bytes;
  if (sizes.m.kept == 0 || !std::ranges::binary_search(sizes.m.dropping_layers, spec.layer)) return f;
  BlockFacts dropping = token_dropping_facts(spec, sizes);
  dropping.validation_bytes = f.validation_bytes;
  return dropping;
}

}  // namespace

std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing, const Mesh& mesh) {
  const int64_t e = precision == Precision::fp32 ? 4 : 2;
  const RankSizes sizes{shape, mesh, micro, e, {e, packing}};
  std::vector<BlockFacts> facts;
  for (const BlockSpec& spec : list_blocks(shape, mesh)) {
    BlockFacts f = costs_of(spec, sizes);
    f.name = spec.name;
    f.kind = spec.kind;
    for (const ParameterSpec& p : spec.parameters) {
      f.parameters += p.size();
      if (p.of_expert && mesh.size(Axis::expert) > 1) f.expert_parameters += p.size();
    }
    f.compute_copy_bytes = precision == Precision::fp32 ? 0 : e * computing_elements(spec, e);
    if (spec.kind == BlockKind::head && shape.tied) f.tied_to = 0;
    facts.push_back(std::move(f));
  }
  return facts;
}

}  // namespace megalith
