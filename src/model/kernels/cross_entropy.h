// Softmax cross-entropy over a chunk of rows, with the gradient left where the logits were.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// logits_RV float32, contiguous. loss_R receives -log softmax(target). With gradient: logits become
// (softmax - one_hot) * scale; without: they are left as they are.
void cross_entropy(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient, double scale);

// The same where logits are some columns of a row, and others have the rest. First the numbers [R, 3], double, that all
// must see of each: largest logit, sum of e^(logit - largest), logit of the target (0 where it is not here). Targets are
// columns here, or outside. With gradient, logits become e^(logit - largest).
void cross_entropy_begin(at::Tensor& logits_RV, const at::Tensor& targets_R, bool gradient, at::Tensor sums_R3);
// Then, from those of all, [K, R, 3], of which mine are the rank-th: loss and gradient.
void cross_entropy_end(at::Tensor& logits_RV, const at::Tensor& targets_R, const at::Tensor& sums_KR3, int64_t rank,
                       at::Tensor& loss_R, bool gradient, double scale);

void cross_entropy_aten(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                        double scale);

}  // namespace megalith::kernels
