#include "families/parameter_list.h"

#include <fmt/format.h>

#include "layout/cuts.h"

namespace megalith {

BlockSpec embedding_block(std::vector<ParameterSpec> parameters) {
  return {"embedding", BlockKind::embedding, -1, std::move(parameters), 0, {}};
}
BlockSpec layer_block(int64_t layer, std::vector<ParameterSpec> parameters) {
  return {fmt::format("layer {}", layer), BlockKind::layer, layer, std::move(parameters), 0, {}};
}
BlockSpec head_block(std::vector<ParameterSpec> parameters) {
  return {"head", BlockKind::head, -1, std::move(parameters), 0, {}};
}

ParameterSpec Cutter::cut(ParameterSpec p, size_t dimension, int64_t parts) const {
  if (ranks_ == 1) return p;
  const int64_t each = p.shape[dimension] / parts;
  p.cut.dimension = dimension;
  p.shape[dimension] = 0;
  for (int64_t part = 0; part < parts; part++) {
    const int64_t begin = cut_point(each, ranks_, rank_), end = cut_point(each, ranks_, rank_ + 1);
    p.cut.ranges.push_back({part * each + begin, part * each + end});
    p.shape[dimension] += end - begin;
  }
  return p;
}

}  // namespace megalith
