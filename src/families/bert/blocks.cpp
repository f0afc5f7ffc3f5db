// BERT: learned positions and token types, LayerNorm after each half, GELU (erf form), masked-language head.

#include "families/blocks.h"
#include "model/kernels/gelu.h"
#include "model/layers/attention_half.h"
#include "model/layers/dropout.h"
#include "model/layers/feed_forward.h"
#include "model/layers/norm.h"
#include "model/layers/vocabulary_loss.h"
#include "model/tensor_ops.h"
#include "model/token_dropping.h"
#include "model/token_embedding.h"

namespace megalith::bert {
namespace {

class BertEmbedding : public TokenEmbedding {
 public:
  using TokenEmbedding::TokenEmbedding;

  at::Tensor forward(const at::Tensor&, const Pass& pass, Tape* tape) override {
    at::Tensor x_NC = tokens_.forward(pass);
    x_NC.add_(types_.value[0]);  // all tokens have type 0: texts are packed, not paired
    add_positions(*positions_, x_NC, pass);
    at::Tensor y_NC = norm_.forward(x_NC).y_NC;
    dropout_.drop(y_NC, pass);
    if (tape) tape->keep(std::move(x_NC));
    return y_NC;
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    at::Tensor x_NC = tape.take();
    at::Tensor g = norm_.backward(dropout_.backward(g_NC, pass), x_NC, norm_.forward(x_NC));
    types_.grad[0].add_(g.sum({0}, false, types_.grad.scalar_type()));
    add_position_gradient(*positions_, g, pass);
    tokens_.backward(g, pass);
    return {};
  }

 private:
  void bind_weights() override {
    tokens_.weight = weight("word_embeddings.weight");
    positions_ = weight("position_embeddings.weight");
    types_ = weight("token_type_embeddings.weight");
    norm_ = {weight("LayerNorm.weight"), weight("LayerNorm.bias"), shape_.norm_eps};
  }
  Weight types_;
  LayerNorm norm_;
};

class BertLayer : public Block {
 public:
  using Block::Block;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    at::Tensor o_NC = attend(x_NC, pass, tape);
    return norm2_.forward(feed(x_NC, std::move(o_NC), pass, tape)).y_NC;
  }

  void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) override {
    const bool kept = !tape.empty();
    at::Tensor in_NC = kept ? tape.first() : x_NC, o_NC = kept ? tape.last() : attend(x_NC, pass, &tape);
    feed(in_NC, std::move(o_NC), pass, &tape);
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    at::Tensor sum2_NC = tape.take(), sum1_NC = tape.take();
    at::Tensor g_sum2_NC = norm2_.backward(g_NC, sum2_NC, norm2_.forward(sum2_NC));
    sum2_NC.reset();
    Normed mid = norm1_.forward(sum1_NC);
    at::Tensor g_mid_NC;
    {
      const at::Tensor mid_NC = all_rows(mid.y_NC, pass);
      const at::Tensor g_all_NC = all_rows(drop2_.backward(g_sum2_NC, pass), pass);
      g_mid_NC = sequence_parallel_.reduce_scatter(feed_forward_.backward(g_all_NC, mid_NC, pass, tape));
    }
    g_mid_NC.add_(g_sum2_NC);
    at::Tensor g_sum1_NC = norm1_.backward(g_mid_NC, sum1_NC, mid);
    return attention_.backward(g_sum1_NC, pass, tape, [](at::Tensor x_NC) { return x_NC; }).add_(g_sum1_NC);
  }

 private:
  // Returns the output of the heads.
  at::Tensor attend(const at::Tensor& x_NC, const Pass& pass, Tape* tape) {
    if (tape) tape->keep(x_NC);
    return attention_.attend(x_NC, pass, tape);
  }

  // Returns the input of the second norm, and keeps it on the tape.
  at::Tensor feed(const at::Tensor& x_NC, at::Tensor o_NC, const Pass& pass, Tape* tape) {
    at::Tensor sum1_NC = attention_.add(x_NC, o_NC, pass);
    o_NC.reset();
    at::Tensor mid_NC = norm1_.forward(sum1_NC).y_NC;
    at::Tensor sum2_NC = drop2_.add(mid_NC, pass, [&](const at::Tensor& onto) {
      return feed_forward_.forward(all_rows(mid_NC, pass), pass, tape, onto);
    });
    if (tape) {
      tape->keep(std::move(sum1_NC));
      tape->keep(sum2_NC);
    }
    return sum2_NC;
  }

  at::Tensor all_rows(const at::Tensor& mine, const Pass& pass) const {
    return sequence_parallel_.all_gather(mine, pass.tokens());
  }

  void bind_weights() override {
    attention_.bind({joined("self.query.weight", "self.value.weight"), joined("self.query.bias", "self.value.bias")},
                    {weight("attention.output.dense.weight"), weight("attention.output.dense.bias")});
    norm1_ = {weight("attention.output.LayerNorm.weight"), weight("attention.output.LayerNorm.bias"), shape_.norm_eps};
    const std::string out = fmt::format("layer.{}.output.", spec_.layer);  // not "attention.output."
    feed_forward_ = {{weight("intermediate.dense.weight"), weight("intermediate.dense.bias")},
                     {{weight(out + "dense.weight"), weight(out + "dense.bias")}, sequence_parallel_},
                     kernels::GeluForm::erf};
    norm2_ = {weight(out + "LayerNorm.weight"), weight(out + "LayerNorm.bias"), shape_.norm_eps};
  }

  SequenceParallel sequence_parallel_{exchanges_.tensor};
  AttentionHalf attention_{shape_, exchanges_, spec_.layer};
  LayerNorm norm1_, norm2_;
  GeluFeedForward feed_forward_;
  DropPlace drop2_{shape_.dropout.residual, RandomUse::residual_dropout, spec_.layer, 1};
};

// Computes the transform and the logits only for positions with a target: about one in seven.
class BertHead : public HeadBlock {
 public:
  using HeadBlock::HeadBlock;
  void tie(const Weight& table) override { output_.table = table; }

  LossSums loss_and_gradient(const at::Tensor& x_NC, const Pass& pass, at::Tensor& gx_NC) override {
    TargetRows rows = target_rows(pass.targets_N, exchanges_.tensor);
    at::Tensor x_RC = rows.select(x_NC), h_RC = dense_.forward(x_RC), a_RC = kernels::gelu(h_RC, kernels::GeluForm::erf);
    Normed normed = norm_.forward(a_RC);
    at::Tensor n_RC = rows.gather(normed.y_NC), gn_RC = tensor::empty_like(n_RC);
    LossSums sums = output_.run(n_RC, rows.targets, pass.gradient_scale, &gn_RC, nullptr);
    at::Tensor g_RC = norm_.backward(rows.sum(gn_RC), a_RC, normed);
    kernels::gelu_backward(h_RC, g_RC, kernels::GeluForm::erf);
    dense_.add_gradients(x_RC, g_RC);
    gx_NC = rows.scatter(dense_.input_gradient(g_RC), x_NC);
    return sums;
  }

  LossSums loss(const at::Tensor& x_NC, const Pass& pass, at::Tensor* each_N) override {
    return target_rows(pass.targets_N, exchanges_.tensor).loss(output_, x_NC, each_N, [&](const at::Tensor& x_RC) {
      return transform(x_RC);
    });
  }

  at::Tensor logits(const at::Tensor& x_RC) override { return output_.logits(transform(x_RC)); }

 private:
  at::Tensor transform(const at::Tensor& x_RC) const {
    return norm_.forward(kernels::gelu(dense_.forward(x_RC), kernels::GeluForm::erf)).y_NC;
  }
  void bind_weights() override {
    if (shape_.head == HeadKind::representation) return;
    dense_ = {weight("transform.dense.weight"), weight("transform.dense.bias")};
    norm_ = {weight("transform.LayerNorm.weight"), weight("transform.LayerNorm.bias"), shape_.norm_eps};
    output_.bias = weight(shape_.tied ? "predictions.bias" : "decoder.bias");
    if (!shape_.tied) output_.table = weight("decoder.weight");
  }
  Linear dense_;
  LayerNorm norm_;
  VocabularyLoss output_ = vocabulary_loss_of(shape_, exchanges_);
};

}  // namespace

std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges) {
  switch (spec.kind) {
    case BlockKind::embedding: return std::make_unique<BertEmbedding>(shape, std::move(spec), exchanges);
    case BlockKind::layer: return std::make_unique<Dropping<BertLayer>>(shape, std::move(spec), exchanges);
    case BlockKind::head: break;
  }
  return std::make_unique<BertHead>(shape, std::move(spec), exchanges);
}

}  // namespace megalith::bert
