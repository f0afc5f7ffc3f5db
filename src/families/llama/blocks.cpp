// Llama and related models (Mistral, Qwen2; with experts: Mixtral, Qwen2-MoE): rotary positions, RMSNorm, SwiGLU,
// grouped-query attention. Only the projections of attention can have biases.
#include <fmt/format.h>

#include "families/blocks.h"
#include "families/llama/mixtral.h"
#include "layout/cuts.h"
#include "model/decoder_head.h"
#include "model/decoder_layer.h"
#include "model/layers/experts.h"
#include "model/layers/feed_forward.h"
#include "model/token_dropping.h"
#include "model/token_embedding.h"

namespace megalith::llama {
namespace {

class LlamaEmbedding : public TokenEmbedding {
 public:
  using TokenEmbedding::TokenEmbedding;

 private:
  void bind_weights() override { tokens_.weight = weight("embed_tokens.weight"); }
};

template <class FeedForward>
class LlamaLayer : public DecoderLayer<RmsNorm, FeedForward> {
 public:
  using DecoderLayer<RmsNorm, FeedForward>::DecoderLayer;

 private:
  void bind_weights() override {
    const ModelShape& s = this->shape_;
    auto weight = [&](const std::string& name) { return this->weight(name); };
    auto joined = [&](const std::string& first, const std::string& last) { return this->joined(first, last); };
    this->norm1_ = {weight("input_layernorm.weight"), s.norm_eps};
    this->norm2_ = {weight("post_attention_layernorm.weight"), s.norm_eps};
    this->attention_.bind(
        {joined("q_proj.weight", "v_proj.weight"), s.qkv_bias ? joined("q_proj.bias", "v_proj.bias") : Weight{}},
        {weight("o_proj.weight"), s.output_bias ? weight("o_proj.bias") : Weight{}});
    this->attention_.heads.rope = {s.rope_theta, s.rope_scaling};
    bind_feed_forward(this->feed_forward_);
  }

  void bind_feed_forward(SwigluFeedForward& dense) {
    dense = {{this->joined("gate_proj.weight", "up_proj.weight"), {}},
             {{this->weight("down_proj.weight"), {}}, this->sequence_parallel_}};
  }

  void bind_feed_forward(ExpertFeedForward& sparse) {
    sparse.exchanges = this->exchanges_;
    sparse.experts = this->shape_.experts;
    sparse.layer = this->spec_.layer;
    const Experts& x = sparse.experts;
    sparse.router = {
        x.router == Router::noisy ? this->joined(".gate.weight", "gate.noise_weight") : this->weight(".gate.weight"), {}};
    if (x.router == Router::sigmoid) sparse.bias = this->weight("gate.e_score_correction_bias");
    if (x.shared > 0)
      sparse.shared = {{this->weight("shared_expert_gate.weight"), {}},
                       {this->joined("shared_expert.gate_proj.weight", "shared_expert.up_proj.weight"), {}},
                       {this->weight("shared_expert.down_proj.weight"), {}}};
    sparse.gate_up.weights.clear();
    sparse.down.weights.clear();
    const bool mixtral = is_mixtral(this->shape_);
    const Mesh& mesh = this->exchanges_.mesh;
    for (int64_t e = cut_point(x.count, mesh.size(Axis::expert), mesh.coordinate(Axis::expert));
         e < cut_point(x.count, mesh.size(Axis::expert), mesh.coordinate(Axis::expert) + 1); e++) {
      const std::string p = fmt::format("experts.{}.", e);
      sparse.gate_up.weights.push_back(this->joined(p + (mixtral ? "w1.weight" : "gate_proj.weight"),
                                                    p + (mixtral ? "w3.weight" : "up_proj.weight")));
      sparse.down.weights.push_back(this->weight(p + (mixtral ? "w2.weight" : "down_proj.weight")));
    }
  }
};

class LlamaHead : public DecoderHead<RmsNorm> {
 public:
  using DecoderHead::DecoderHead;

 private:
  void bind_norm() override { norm_ = {weight("model.norm.weight"), shape_.norm_eps}; }
};

}  // namespace

std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges) {
  switch (spec.kind) {
    case BlockKind::embedding: return std::make_unique<LlamaEmbedding>(shape, std::move(spec), exchanges);
    case BlockKind::layer:
      if (shape.experts.in_layer(spec.layer))
        return std::make_unique<Dropping<LlamaLayer<ExpertFeedForward>>>(shape, std::move(spec), exchanges);
      return std::make_unique<Dropping<LlamaLayer<SwigluFeedForward>>>(shape, std::move(spec), exchanges);
    case BlockKind::head: break;
  }
  return std::make_unique<LlamaHead>(shape, std::move(spec), exchanges);
}

}  // namespace megalith::llama
