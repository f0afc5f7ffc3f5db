// Llama and its kin (Mistral, Qwen2): rotary positions, RMSNorm, SwiGLU, grouped-query attention; no biases but, where
// the shape says so, on the attention's projections.
#include "model/archs.h"
#include "model/decoder_head.h"
#include "model/decoder_layer.h"
#include "model/layers/feed_forward.h"
#include "model/layers/table.h"
#include "model/token_dropping.h"

namespace megalith {
namespace {

class LlamaEmbedding : public EmbeddingBlock {
 public:
  using EmbeddingBlock::EmbeddingBlock;

  at::Tensor forward(const at::Tensor&, const Pass& pass, Tape*) override {
    at::Tensor x_NC = tokens_.forward(pass);
    dropout_.drop(x_NC, pass);
    return x_NC;
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape&) override {
    tokens_.backward(dropout_.backward(g_NC, pass), pass);
    return {};
  }

  Weight table() const override { return tokens_.weight; }
  void fold() override { tokens_.fold(); }

 private:
  void wire() override { tokens_.weight = weight("embed_tokens.weight"); }
  TokenTable tokens_{shape_, ranks_};
  DropPlace dropout_{shape_.dropout.embedding, RandomUse::embedding_dropout};
};

class LlamaLayer : public DecoderLayer<RmsNorm, SwigluFeedForward> {
 public:
  using DecoderLayer::DecoderLayer;

 private:
  void wire() override {
    norm1_ = {weight("input_layernorm.weight"), shape_.norm_eps};
    norm2_ = {weight("post_attention_layernorm.weight"), shape_.norm_eps};
    to_qkv_ = {joined("q_proj.weight", "v_proj.weight"),
               shape_.qkv_bias ? joined("q_proj.bias", "v_proj.bias") : Weight{}};
    from_heads_ = {{weight("o_proj.weight"), shape_.output_bias ? weight("o_proj.bias") : Weight{}}, shares_};
    feed_forward_ = {{joined("gate_proj.weight", "up_proj.weight"), {}}, {{weight("down_proj.weight"), {}}, shares_}};
    attention_.rope = {shape_.rope_theta, shape_.rope_scaling};
  }
};

class LlamaHead : public DecoderHead<RmsNorm> {
 public:
  using DecoderHead::DecoderHead;

 private:
  void wire_norm() override { norm_ = {weight("model.norm.weight"), shape_.norm_eps}; }
};

}  // namespace

std::unique_ptr<Block> make_llama_block(const ModelShape& shape, BlockSpec spec, const Ranks& ranks) {
  switch (spec.kind) {
    case BlockKind::embedding: return std::make_unique<LlamaEmbedding>(shape, std::move(spec), ranks);
    case BlockKind::layer: return std::make_unique<Dropping<LlamaLayer>>(shape, std::move(spec), ranks);
    case BlockKind::head: break;
  }
  return std::make_unique<LlamaHead>(shape, std::move(spec), ranks);
}

}  // namespace megalith
