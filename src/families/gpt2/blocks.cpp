// GPT-2: learned positions, LayerNorm, GELU (tanh form), biases everywhere.
#include "families/blocks.h"
#include "model/decoder_head.h"
#include "model/decoder_layer.h"
#include "model/layers/feed_forward.h"
#include "model/token_dropping.h"
#include "model/token_embedding.h"

namespace megalith::gpt2 {
namespace {

class Gpt2Embedding : public TokenEmbedding {
 public:
  using TokenEmbedding::TokenEmbedding;

 private:
  void bind_weights() override {
    tokens_.weight = weight("wte.weight");
    positions_ = weight("wpe.weight");
  }
};

class Gpt2Layer : public DecoderLayer<LayerNorm, GeluFeedForward> {
 public:
  using DecoderLayer::DecoderLayer;

 private:
  void bind_weights() override {
    auto linear = [&](const std::string& name) {
      return Linear{weight(name + ".weight"), weight(name + ".bias"), MatrixOrder::in_out};
    };
    norm1_ = {weight("ln_1.weight"), weight("ln_1.bias"), shape_.norm_eps};
    norm2_ = {weight("ln_2.weight"), weight("ln_2.bias"), shape_.norm_eps};
    attention_.bind(linear("attn.c_attn"), linear("attn.c_proj"));
    feed_forward_ = {linear("mlp.c_fc"), {linear("mlp.c_proj"), sequence_parallel_}, kernels::GeluForm::tanh};
  }
};

class Gpt2Head : public DecoderHead<LayerNorm> {
 public:
  using DecoderHead::DecoderHead;

 private:
  void bind_norm() override { norm_ = {weight("ln_f.weight"), weight("ln_f.bias"), shape_.norm_eps}; }
};

}  // namespace

std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges) {
  switch (spec.kind) {
    case BlockKind::embedding: return std::make_unique<Gpt2Embedding>(shape, std::move(spec), exchanges);
    case BlockKind::layer: return std::make_unique<Dropping<Gpt2Layer>>(shape, std::move(spec), exchanges);
    case BlockKind::head: break;
  }
  return std::make_unique<Gpt2Head>(shape, std::move(spec), exchanges);
}

}  // namespace megalith::gpt2
