#include <fmt/format.h>

#include <cmath>

#include "families/list.h"
#include "families/parameter_list.h"

namespace megalith::gpt2 {

std::vector<BlockSpec> parameters(const ModelShape& s, const Mesh& mesh) {
  const Cutter own(mesh);
  const int64_t C = s.hidden, F = s.ffn;
  // Matrices that add to the residual stream start smaller, by a factor of 1/sqrt(2 layers).
  const double residual_std = kInitialStd / std::sqrt(2.0 * static_cast<double>(s.layers));
  std::vector<BlockSpec> blocks;
  blocks.push_back(embedding_block({own.rows(matrix("transformer.wte.weight", {s.vocab, C})),
                                    matrix("transformer.wpe.weight", {s.context, C})}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("transformer.h.{}.", i);
    blocks.push_back(layer_block(
        i, {ones(p + "ln_1.weight", C), zeros(p + "ln_1.bias", C),
            own.columns(matrix(p + "attn.c_attn.weight", {C, 3 * C}), 3),
            own.rows(zeros(p + "attn.c_attn.bias", 3 * C), 3),
            own.rows(matrix(p + "attn.c_proj.weight", {C, C}, residual_std)), zeros(p + "attn.c_proj.bias", C),
            ones(p + "ln_2.weight", C), zeros(p + "ln_2.bias", C),
            own.columns(matrix(p + "mlp.c_fc.weight", {C, F})), own.rows(zeros(p + "mlp.c_fc.bias", F)),
            own.rows(matrix(p + "mlp.c_proj.weight", {F, C}, residual_std)), zeros(p + "mlp.c_proj.bias", C)}));
  }
  blocks.push_back(head_block({ones("transformer.ln_f.weight", C), zeros("transformer.ln_f.bias", C)}));
  if (s.has_own_table()) blocks.back().parameters.push_back(own.rows(matrix("lm_head.weight", {s.vocab, C})));
  return blocks;
}

}  // namespace megalith::gpt2
