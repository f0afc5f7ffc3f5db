// The attention half of a layer without its norm: q, k and v, attention, the output projection, dropout, and the sum with
// the residual stream. The norm of a layer is either before this half or after its sum.
#pragma once
#include <utility>

#include "model/layers/attention.h"
#include "model/layers/dropout.h"
#include "model/layers/linear.h"
#include "model/layers/sequence_parallel.h"

namespace megalith {

class AttentionHalf {
 public:
  AttentionHalf(const ModelShape& shape, const Exchanges& exchanges, int64_t layer)
      : heads(attention_of(shape, exchanges, layer)),
        sequence_parallel_{exchanges.tensor},
        dropout_{shape.dropout.residual, RandomUse::residual_dropout, layer, 0} {}
  AttentionHalf(const AttentionHalf&) = delete;  // tapes hold its address
  AttentionHalf& operator=(const AttentionHalf&) = delete;

  void bind(Linear to_qkv, Linear from_heads) {
    to_qkv_ = std::move(to_qkv);
    from_heads_ = {std::move(from_heads), sequence_parallel_};
  }

  // Returns the output of the attention heads. The layer has already kept its own input on the tape.
  at::Tensor attend(const at::Tensor& input_NC, const Pass& pass, Tape* tape) const {
    at::Tensor o_NC = heads.forward(to_qkv_.forward(all_rows(input_NC, pass)), pass, tape);
    if (tape) tape->mark_attention();
    return o_NC;
  }

  // Returns the residual stream after this half.
  at::Tensor add(const at::Tensor& residual_NC, const at::Tensor& o_NC, const Pass& pass) const {
    return dropout_.add(residual_NC, pass, [&](const at::Tensor& onto) { return from_heads_.forward(o_NC, onto); });
  }

  // Takes the gradient of the sum and returns the gradient of attend's input. The caller adds the gradient of the residual.
  // `input_of` makes attend's input from the layer's input, which comes from the tape.
  template <class InputOf>
  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape, const InputOf& input_of) const {
    at::Tensor o_NC = tape.take(), g_out_NC = all_rows(dropout_.backward(g_NC, pass), pass);
    tape.weight_gradient([this, o_NC, g_out_NC] { from_heads_.add_gradients(o_NC, g_out_NC); });
    at::Tensor g_qkv_NX = heads.backward(from_heads_.input_gradient(g_out_NC), o_NC, pass, tape);
    tape.weight_gradient([this, input_NC = all_rows(input_of(tape.take()), pass), g_qkv_NX] {
      to_qkv_.add_gradients(input_NC, g_qkv_NX);
    });
    return sequence_parallel_.reduce_scatter(to_qkv_.input_gradient(g_qkv_NX));
  }

  Attention heads;

 private:
  at::Tensor all_rows(const at::Tensor& mine, const Pass& pass) const {
    return sequence_parallel_.all_gather(mine, pass.tokens());
  }

  SequenceParallel sequence_parallel_;
  Linear to_qkv_;
  DeepLinear from_heads_;
  DropPlace dropout_;
};

}  // namespace megalith
