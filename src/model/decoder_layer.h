// The layer of GPT-2 and Llama: norm, attention, add; norm, feed-forward, add. The architectures differ in which
// norm, which feed-forward, and how the weights are named. Norms, dropout and additions run on the rows that are here;
// all rows meet for the heads and the feed-forward columns that are here.
#pragma once
#include "model/block.h"
#include "model/layers/attention.h"
#include "model/layers/dropout.h"
#include "model/layers/norm.h"

namespace megalith {

template <class Norm, class FeedForward>
class DecoderLayer : public Block {
 public:
  using Block::Block;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    at::Tensor o_NC = attend(x_NC, pass, tape);
    at::Tensor mid_NC = drop1_.add(x_NC, pass, [&](const at::Tensor& onto) { return from_heads_.forward(o_NC, onto); });
    o_NC.reset();
    at::Tensor y_NC = drop2_.add(mid_NC, pass, [&](const at::Tensor& onto) {
      return feed_forward_.forward(all_rows(norm2_.forward(mid_NC).y_NC, pass), pass, tape, onto);
    });
    if (tape) tape->keep(std::move(mid_NC));
    return y_NC;
  }

  void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) override {
    const bool kept = !tape.empty();
    at::Tensor in_NC = kept ? tape.first() : x_NC, o_NC = kept ? tape.last() : attend(x_NC, pass, &tape);
    at::Tensor mid_NC = drop1_.add(in_NC, pass, [&](const at::Tensor& onto) { return from_heads_.forward(o_NC, onto); });
    feed_forward_.recompute(all_rows(norm2_.forward(mid_NC).y_NC, pass), pass, tape);
    tape.keep(std::move(mid_NC));
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    at::Tensor g_mid_NC;
    {
      at::Tensor mid_NC = tape.take();
      Normed normed = norm2_.forward(mid_NC);
      const at::Tensor n_NC = all_rows(normed.y_NC, pass);
      const at::Tensor g_all_NC = all_rows(drop2_.backward(g_NC, pass), pass);
      at::Tensor gn_NC = shares_.reduce_scatter(feed_forward_.backward(g_all_NC, n_NC, pass, tape));
      g_mid_NC = norm2_.backward(gn_NC, mid_NC, normed, g_NC);
    }
    at::Tensor o_NC = tape.take(), g_out_NC = all_rows(drop1_.backward(g_mid_NC, pass), pass);
    tape.weight_gradient([this, o_NC, g_out_NC] { from_heads_.add_gradients(o_NC, g_out_NC); });
    at::Tensor g_qkv_NX = attention_.backward(from_heads_.input_gradient(g_out_NC), o_NC, pass, tape);
    at::Tensor x_NC = tape.take();
    Normed normed = norm1_.forward(x_NC);
    tape.weight_gradient([this, n_NC = all_rows(normed.y_NC, pass), g_qkv_NX] { to_qkv_.add_gradients(n_NC, g_qkv_NX); });
    return norm1_.backward(shares_.reduce_scatter(to_qkv_.input_gradient(g_qkv_NX)), x_NC, normed, g_mid_NC);
  }

 protected:
  // The heads' output.
  at::Tensor attend(const at::Tensor& x_NC, const Pass& pass, Tape* tape) {
    if (tape) tape->keep(x_NC);
    at::Tensor o_NC = attention_.forward(to_qkv_.forward(all_rows(norm1_.forward(x_NC).y_NC, pass)), pass, tape);
    if (tape) tape->mark_attention();
    return o_NC;
  }

  at::Tensor all_rows(const at::Tensor& mine, const Pass& pass) const { return shares_.all_gather(mine, pass.tokens()); }

  SequenceParallel shares_{exchanges_.tensor};
  Norm norm1_, norm2_;
  Linear to_qkv_;
  DeepLinear from_heads_;
  FeedForward feed_forward_;
  Attention attention_ = attention_of(shape_, exchanges_, spec_.layer);
  DropPlace drop1_{shape_.dropout.residual, RandomUse::residual_dropout, spec_.layer, 0};
  DropPlace drop2_{shape_.dropout.residual, RandomUse::residual_dropout, spec_.layer, 1};
};

}  // namespace megalith
