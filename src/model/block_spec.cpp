#include "model/block_spec.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "base/error.h"
#include "config/split_check.h"

namespace megalith {
namespace {

using Shape = std::vector<int64_t>;

// Initial values as Hugging Face's _init_weights gives them: normal(0, 0.02) for matrices and tables, ones and
// zeros for norms and biases; GPT-2 scales what feeds the residual stream by 1/sqrt(2 layers).
constexpr double kInitialStd = 0.02;

ParameterSpec matrix(std::string name, Shape shape, double deviation = kInitialStd) {
  return {std::move(name), std::move(shape), deviation, 0, true};
}
ParameterSpec ones(std::string name, int64_t n) { return {std::move(name), {n}, 0, 1, false}; }
ParameterSpec zeros(std::string name, int64_t n) { return {std::move(name), {n}, 0, 0, false}; }
ParameterSpec joined(ParameterSpec parameter) {
  parameter.joins_previous = true;
  return parameter;
}

// Along the tensor axis: what a rank has of a parameter whose given dimension is `parts` equal parts (q, k, v), each cut
// over the ranks.
class Cutter {
 public:
  explicit Cutter(const Split& split) : ranks_(split.tensor), rank_(split.tensor_rank) {}

  ParameterSpec rows(ParameterSpec p, int64_t parts = 1) const { return cut(std::move(p), 0, parts); }
  ParameterSpec columns(ParameterSpec p, int64_t parts = 1) const { return cut(std::move(p), 1, parts); }

 private:
  ParameterSpec cut(ParameterSpec p, size_t dimension, int64_t parts) const {
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
  int64_t ranks_, rank_;
};

BlockSpec block(std::string name, BlockKind kind, int64_t layer, std::vector<ParameterSpec> parameters) {
  return {std::move(name), kind, layer, std::move(parameters), 0, {}};
}

std::vector<BlockSpec> gpt2_blocks(const ModelShape& s, const Cutter& own) {
  const int64_t C = s.hidden, F = s.ffn;
  const double residual_std = kInitialStd / std::sqrt(2.0 * static_cast<double>(s.layers));
  std::vector<BlockSpec> blocks;
  blocks.push_back(block("embedding", BlockKind::embedding, -1,
                         {own.rows(matrix("transformer.wte.weight", {s.vocab, C})),
                          matrix("transformer.wpe.weight", {s.context, C})}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("transformer.h.{}.", i);
    blocks.push_back(block(
        fmt::format("layer {}", i), BlockKind::layer, i,
        {ones(p + "ln_1.weight", C), zeros(p + "ln_1.bias", C),
         own.columns(matrix(p + "attn.c_attn.weight", {C, 3 * C}), 3), own.rows(zeros(p + "attn.c_attn.bias", 3 * C), 3),
         own.rows(matrix(p + "attn.c_proj.weight", {C, C}, residual_std)), zeros(p + "attn.c_proj.bias", C),
         ones(p + "ln_2.weight", C), zeros(p + "ln_2.bias", C),
         own.columns(matrix(p + "mlp.c_fc.weight", {C, F})), own.rows(zeros(p + "mlp.c_fc.bias", F)),
         own.rows(matrix(p + "mlp.c_proj.weight", {F, C}, residual_std)), zeros(p + "mlp.c_proj.bias", C)}));
  }
  blocks.push_back(block("head", BlockKind::head, -1,
                         {ones("transformer.ln_f.weight", C), zeros("transformer.ln_f.bias", C)}));
  if (!s.tied) blocks.back().parameters.push_back(own.rows(matrix("lm_head.weight", {s.vocab, C})));
  return blocks;
}

// Experts come last, one after the other, each a contiguous part: gate, up, down. Of those that other ranks of the expert
// axis have, nothing is here but the name: parameters have the same numbers on all ranks.
void add_experts(const ModelShape& s, const Split& split, const Cutter& own, const std::string& layer,
                 std::vector<ParameterSpec>& to) {
  const Experts& x = s.experts;
  const int64_t C = s.hidden, F = x.ffn;
  const bool mixtral = is_mixtral(s);
  const std::string p = layer + (mixtral ? "block_sparse_moe." : "mlp.");
  // Switch begins small: a tenth of the usual variance of 1 / inputs. Shazeer's noise alone decides at first.
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
  const int64_t first = cut_point(x.count, split.expert, split.expert_rank);
  const int64_t last = cut_point(x.count, split.expert, split.expert_rank + 1);
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

std::vector<BlockSpec> llama_blocks(const ModelShape& s, const Split& split, const Cutter& own) {
  const int64_t C = s.hidden, F = s.ffn, Q = s.attention_width(), KV = s.kv_heads * s.head_dim();
  std::vector<BlockSpec> blocks;
  blocks.push_back(block("embedding", BlockKind::embedding, -1,
                         {own.rows(matrix("model.embed_tokens.weight", {s.vocab, C}))}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("model.layers.{}.", i);
    if (s.experts.shared_from(i)) {
      blocks.push_back(block(fmt::format("layer {}", i), BlockKind::layer, i,
                             {ones(p + "input_layernorm.weight", C), ones(p + "post_attention_layernorm.weight", C)}));
      continue;
    }
    std::vector<ParameterSpec> parameters{ones(p + "input_layernorm.weight", C),
                                          own.rows(matrix(p + "self_attn.q_proj.weight", {Q, C})),
                                          joined(own.rows(matrix(p + "self_attn.k_proj.weight", {KV, C}))),
                                          joined(own.rows(matrix(p + "self_attn.v_proj.weight", {KV, C})))};
    auto add = [&](ParameterSpec parameter) { parameters.push_back(std::move(parameter)); };
    if (s.qkv_bias) {
      add(own.rows(zeros(p + "self_attn.q_proj.bias", Q)));
      add(joined(own.rows(zeros(p + "self_attn.k_proj.bias", KV))));
      add(joined(own.rows(zeros(p + "self_attn.v_proj.bias", KV))));
    }
    add(own.columns(matrix(p + "self_attn.o_proj.weight", {C, Q})));
    if (s.output_bias) add(zeros(p + "self_attn.o_proj.bias", C));
    add(ones(p + "post_attention_layernorm.weight", C));
    if (s.experts.in_layer(i)) {
      add_experts(s, split, own, p, parameters);
    } else {
      add(own.rows(matrix(p + "mlp.gate_proj.weight", {F, C})));
      add(joined(own.rows(matrix(p + "mlp.up_proj.weight", {F, C}))));
      add(own.columns(matrix(p + "mlp.down_proj.weight", {C, F})));
    }
    blocks.push_back(block(fmt::format("layer {}", i), BlockKind::layer, i, std::move(parameters)));
  }
  blocks.push_back(block("head", BlockKind::head, -1, {ones("model.norm.weight", C)}));
  if (!s.tied) blocks.back().parameters.push_back(own.rows(matrix("lm_head.weight", {s.vocab, C})));
  return blocks;
}

std::vector<BlockSpec> bert_blocks(const ModelShape& s, const Cutter& own) {
  const int64_t C = s.hidden, F = s.ffn;
  std::vector<BlockSpec> blocks;
  const std::string e = "bert.embeddings.";
  blocks.push_back(block("embedding", BlockKind::embedding, -1,
                         {own.rows(matrix(e + "word_embeddings.weight", {s.vocab, C})),
                          matrix(e + "position_embeddings.weight", {s.context, C}),
                          matrix(e + "token_type_embeddings.weight", {s.token_types, C}),
                          ones(e + "LayerNorm.weight", C), zeros(e + "LayerNorm.bias", C)}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("bert.encoder.layer.{}.", i);
    blocks.push_back(block(fmt::format("layer {}", i), BlockKind::layer, i,
                           {own.rows(matrix(p + "attention.self.query.weight", {C, C})),
                            joined(own.rows(matrix(p + "attention.self.key.weight", {C, C}))),
                            joined(own.rows(matrix(p + "attention.self.value.weight", {C, C}))),
                            own.rows(zeros(p + "attention.self.query.bias", C)),
                            joined(own.rows(zeros(p + "attention.self.key.bias", C))),
                            joined(own.rows(zeros(p + "attention.self.value.bias", C))),
                            own.columns(matrix(p + "attention.output.dense.weight", {C, C})),
                            zeros(p + "attention.output.dense.bias", C),
                            ones(p + "attention.output.LayerNorm.weight", C),
                            zeros(p + "attention.output.LayerNorm.bias", C),
                            own.rows(matrix(p + "intermediate.dense.weight", {F, C})),
                            own.rows(zeros(p + "intermediate.dense.bias", F)),
                            own.columns(matrix(p + "output.dense.weight", {C, F})), zeros(p + "output.dense.bias", C),
                            ones(p + "output.LayerNorm.weight", C), zeros(p + "output.LayerNorm.bias", C)}));
  }
  const std::string h = "cls.predictions.";
  // The transform is whole on every rank: each takes its own rows through it.
  blocks.push_back(block("head", BlockKind::head, -1,
                         {matrix(h + "transform.dense.weight", {C, C}), zeros(h + "transform.dense.bias", C),
                          ones(h + "transform.LayerNorm.weight", C), zeros(h + "transform.LayerNorm.bias", C),
                          // Where transformers computes with it: untied, the decoder has a bias of its own.
                          own.rows(zeros(h + (s.tied ? "bias" : "decoder.bias"), s.vocab))}));
  if (!s.tied) blocks.back().parameters.push_back(own.rows(matrix(h + "decoder.weight", {s.vocab, C})));
  return blocks;
}

void lay_out(BlockSpec& block, const Split& split) {
  int64_t end = 0;
  const auto align = [&](int64_t to) { end = (end + to - 1) / to * to; };
  block.parts = {{}};
  for (ParameterSpec& parameter : block.parameters) {
    if (!parameter.joins_previous) align(kFlatAlign);
    if (parameter.begins_expert && parameter.size() > 0) {
      const int64_t expert = block.parts.back().expert + 1;
      block.parts.back().range.end = end;
      align(kPartAlign);
      block.parts.push_back({{end, end}, split.expert > 1, expert});
    }
    parameter.offset = end;
    end += parameter.size();
  }
  align(kFlatAlign);
  block.flat_size = block.parts.back().range.end = end;
}

}  // namespace

std::vector<FlatPart> by_ranks(const std::vector<FlatPart>& parts) {
  std::vector<FlatPart> joined;
  for (const FlatPart& part : parts) {
    if (joined.empty() || joined.back().spread != part.spread) joined.push_back(part);
    else joined.back() = {{joined.back().range.begin, part.range.end}, part.spread};
  }
  return joined;
}

int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}
int64_t ParameterSpec::whole_size() const {
  return std::accumulate(whole_shape.begin(), whole_shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t BlockSpec::wide_before(int64_t flat) const {
  int64_t sum = 0;
  for (const ParameterSpec& p : parameters)
    if (p.wide) sum += std::clamp<int64_t>(flat - p.offset, 0, p.size());
  return sum;
}

const ParameterSpec* BlockSpec::find(const std::string& suffix) const {
  for (const ParameterSpec& p : parameters)
    if (p.name.ends_with(suffix)) return &p;
  return nullptr;
}

const ParameterSpec& BlockSpec::parameter(const std::string& suffix) const {
  const ParameterSpec* found = find(suffix);
  MEGALITH_ASSERT(found, "{} has no parameter {}", name, suffix);
  return *found;
}

std::vector<BlockSpec> list_blocks(const ModelShape& shape, const Split& split) {
  check_split(shape, split);
  const Cutter own(split);
  std::vector<BlockSpec> blocks = shape.arch == Arch::gpt2    ? gpt2_blocks(shape, own)
                                  : shape.arch == Arch::llama ? llama_blocks(shape, split, own)
                                                              : bert_blocks(shape, own);
  for (BlockSpec& b : blocks) lay_out(b, split);
  return blocks;
}

}  // namespace megalith
