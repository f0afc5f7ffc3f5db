// Softmax cross-entropy over a chunk of rows, with the gradient left where the logits were.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// logits_RV float32, contiguous. loss_R receives -log softmax(target). With gradient: logits become
// (softmax - one_hot) * scale; without: they are left as they are.
void cross_entropy(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient, double scale);

void cross_entropy_aten(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                        double scale);

}  // namespace megalith::kernels
