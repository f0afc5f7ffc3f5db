// The layer of GPT-2 and Llama: norm, attention, add; norm, feed-forward, add. The architectures differ in the norm, the
// feed-forward, and the names of the weights. Norms, dropout and additions run on the rows of this rank. The heads and the
// feed-forward columns of this rank need all rows, which are gathered for them.
#pragma once
#include "model/block.h"
#include "model/layers/attention_half.h"
#include "model/layers/dropout.h"
#include "model/layers/norm.h"

namespace megalith {

template <class Norm, class FeedForward>
class DecoderLayer : public Block {
 public:
  using Block::Block;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    at::Tensor o_NC = attend(x_NC, pass, tape);
    at::Tensor mid_NC = attention_.add(x_NC, o_NC, pass);
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
    at::Tensor mid_NC = attention_.add(in_NC, o_NC, pass);
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
      at::Tensor gn_NC = sequence_parallel_.reduce_scatter(feed_forward_.backward(g_all_NC, n_NC, pass, tape));
      g_mid_NC = norm2_.backward(gn_NC, mid_NC, normed, g_NC);
    }
    at::Tensor x_NC;
    Normed normed;
    const at::Tensor gn_NC = attention_.backward(g_mid_NC, pass, tape, [&](at::Tensor taken_NC) {
      x_NC = std::move(taken_NC);
      normed = norm1_.forward(x_NC);
      return normed.y_NC;
    });
    return norm1_.backward(gn_NC, x_NC, normed, g_mid_NC);
  }

 protected:
  // Returns the output of the attention heads.
  at::Tensor attend(const at::Tensor& x_NC, const Pass& pass, Tape* tape) {
    if (tape) tape->keep(x_NC);
    return attention_.attend(norm1_.forward(x_NC).y_NC, pass, tape);
  }

  at::Tensor all_rows(const at::Tensor& mine, const Pass& pass) const {
    return sequence_parallel_.all_gather(mine, pass.tokens());
  }

  SequenceParallel sequence_parallel_{exchanges_.tensor};
  AttentionHalf attention_{shape_, exchanges_, spec_.layer};
  Norm norm1_, norm2_;
  FeedForward feed_forward_;
  DropPlace drop2_{shape_.dropout.residual, RandomUse::residual_dropout, spec_.layer, 1};
};

}  // namespace megalith
