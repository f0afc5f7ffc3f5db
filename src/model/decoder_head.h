// The head of GPT-2 and Llama: a final norm, then the loss over the vocabulary. The two differ only in the norm.
#pragma once

#include "model/block.h"
#include "model/layers/norm.h"
#include "model/layers/vocabulary_loss.h"
#include "model/tensor_ops.h"

namespace megalith {

template <class Norm>
class DecoderHead : public HeadBlock {
 public:
  using HeadBlock::HeadBlock;
  void tie(const Weight& table) override { output_.table = table; }

  LossSums loss_and_gradient(const at::Tensor& x_NC, const Pass& pass, at::Tensor& gx_NC) override {
    TargetRows rows = target_rows(pass.targets_N, exchanges_.tensor);
    at::Tensor x_RC = rows.select(x_NC);
    Normed normed = norm_.forward(x_RC);
    at::Tensor n_RC = rows.gather(normed.y_NC), gn_RC = tensor::empty_like(n_RC);
    LossSums sums = output_.run(n_RC, rows.targets, pass.gradient_scale, &gn_RC, nullptr);
    gx_NC = rows.scatter(norm_.backward(rows.sum(gn_RC), x_RC, normed), x_NC);
    return sums;
  }

  LossSums loss(const at::Tensor& x_NC, const Pass& pass, at::Tensor* each_N) override {
    return target_rows(pass.targets_N, exchanges_.tensor).loss(output_, x_NC, each_N, [&](const at::Tensor& x_RC) {
      return norm_.forward(x_RC).y_NC;
    });
  }

  at::Tensor logits(const at::Tensor& x_RC) override { return output_.logits(norm_.forward(x_RC).y_NC); }

 protected:
  at::Tensor outputs(const at::Tensor& x_NC) override { return norm_.forward(x_NC).y_NC; }
  at::Tensor outputs_backward(const at::Tensor& g_NC, const at::Tensor& x_NC) override {
    return norm_.backward(g_NC, x_NC, norm_.forward(x_NC));
  }
  void bind_weights() override {
    bind_norm();
    if (shape_.has_own_table()) output_.table = weight("lm_head.weight");
  }
  virtual void bind_norm() = 0;
  Norm norm_;

 private:
  VocabularyLoss output_ = vocabulary_loss_of(shape_, exchanges_);
};

}  // namespace megalith
