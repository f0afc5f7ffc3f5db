#include <fmt/format.h>

#include <cmath>
#include <span>

#include "families/list.h"
#include "families/llama/mixtral.h"
#include "families/parameter_list.h"
#include "layout/cuts.h"

namespace megalith::llama {
namespace {

// Adds the parameters of the router and the experts. Experts come last; each is a contiguous part: gate, up, down.
// Experts of other ranks of the expert axis are listed with size 0, so that parameters have the same numbers on all
// ranks.
void add_experts(const ModelShape& s, const Mesh& mesh, const Cutter& own, const std::string& layer,
                 std::vector<ParameterSpec>& to) {
  const Experts& x = s.experts;
  const int64_t C = s.hidden, F = x.ffn;
  const bool mixtral = is_mixtral(s);
  const std::string p = layer + (mixtral ? "block_sparse_moe." : "mlp.");
  // Switch starts with small weights: a tenth of the usual variance of 1 / inputs. A noisy router (Shazeer) starts at
  // 0, so that only its noise decides at first.
  auto begins = [&](int64_t inputs) {
    return x.router == Router::switch_ ? std::sqrt(0.1 / static_cast<double>(inputs)) : kInitialStd;
  };
  const size_t router = to.size();
  to.push_back(matrix(p + "gate.weight", {x.count, C}, x.router == Router::noisy ? 0 : begins(C)));
  if (x.router == Router::noisy) to.push_back(joined(matrix(p + "gate.noise_weight", {x.count, C}, 0)));
  if (x.router == Router::sigmoid) {
    to.push_back(zeros(p + "gate.e_score_correction_bias", x.count));
    to.back().sign_rate = x.bias_rate;
  }
  for (size_t i = router; i < to.size(); i++) to[i].wide = true;
  auto add = [&](const std::string& of, const char* gate, const char* up, const char* down, int64_t width) {
    to.push_back(own.rows(matrix(of + gate + ".weight", {width, C}, begins(C))));
    to.push_back(joined(own.rows(matrix(of + up + ".weight", {width, C}, begins(C)))));
    to.push_back(own.columns(matrix(of + down + ".weight", {C, width}, begins(width))));
  };
  if (x.shared > 0) {
    to.push_back(matrix(p + "shared_expert_gate.weight", {1, C}));
    add(p + "shared_expert.", "gate_proj", "up_proj", "down_proj", x.shared);
  }
  const int64_t first = cut_point(x.count, mesh.size(Axis::expert), mesh.coordinate(Axis::expert));
  const int64_t last = cut_point(x.count, mesh.size(Axis::expert), mesh.coordinate(Axis::expert) + 1);
  for (int64_t e = 0; e < x.count; e++) {
    const std::string expert = fmt::format("{}experts.{}.", p, e);
    if (mixtral) add(expert, "w1", "w3", "w2", F);
    else add(expert, "gate_proj", "up_proj", "down_proj", F);
    to[to.size() - 3].begins_expert = true;
    for (ParameterSpec& parameter : std::span(to).last(3)) {
      parameter.of_expert = true;
      if (e >= first && e < last) continue;
      parameter.cut = {0, {{0, 0}}};
      parameter.shape[0] = 0;
    }
  }
}

}  // namespace

std::vector<BlockSpec> parameters(const ModelShape& s, const Mesh& mesh) {
  const Cutter own(mesh);
  const int64_t C = s.hidden, F = s.ffn, Q = s.attention_width(), KV = s.kv_heads * s.head_dim();
  std::vector<BlockSpec> blocks;
  blocks.push_back(embedding_block({own.rows(matrix("model.embed_tokens.weight", {s.vocab, C}))}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("model.layers.{}.", i);
    if (s.experts.shared_from(i)) {
      blocks.push_back(layer_block(
          i, {ones(p + "input_layernorm.weight", C), ones(p + "post_attention_layernorm.weight", C)}));
      continue;
    }
    std::vector<ParameterSpec> list{ones(p + "input_layernorm.weight", C),
                                    own.rows(matrix(p + "self_attn.q_proj.weight", {Q, C})),
                                    joined(own.rows(matrix(p + "self_attn.k_proj.weight", {KV, C}))),
                                    joined(own.rows(matrix(p + "self_attn.v_proj.weight", {KV, C})))};
    auto add = [&](ParameterSpec parameter) { list.push_back(std::move(parameter)); };
    if (s.qkv_bias) {
      add(own.rows(zeros(p + "self_attn.q_proj.bias", Q)));
      add(joined(own.rows(zeros(p + "self_attn.k_proj.bias", KV))));
      add(joined(own.rows(zeros(p + "self_attn.v_proj.bias", KV))));
    }
    add(own.columns(matrix(p + "self_attn.o_proj.weight", {C, Q})));
    if (s.output_bias) add(zeros(p + "self_attn.o_proj.bias", C));
    add(ones(p + "post_attention_layernorm.weight", C));
    if (s.experts.in_layer(i)) {
      add_experts(s, mesh, own, p, list);
    } else {
      add(own.rows(matrix(p + "mlp.gate_proj.weight", {F, C})));
      add(joined(own.rows(matrix(p + "mlp.up_proj.weight", {F, C}))));
      add(own.columns(matrix(p + "mlp.down_proj.weight", {C, F})));
    }
    blocks.push_back(layer_block(i, std::move(list)));
  }
  blocks.push_back(head_block({ones("model.norm.weight", C)}));
  if (s.has_own_table()) blocks.back().parameters.push_back(own.rows(matrix("lm_head.weight", {s.vocab, C})));
  return blocks;
}

}  // namespace megalith::llama
