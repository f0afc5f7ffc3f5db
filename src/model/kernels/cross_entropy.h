// Softmax cross-entropy over a chunk of rows. The gradient overwrites the logits.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// logits_RV is float32 and contiguous. loss_R receives -log softmax(target). With `gradient`, the logits become
// (softmax - one_hot) * scale. Otherwise they do not change.
void cross_entropy(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient, double scale);

// The same if this rank has some columns of the logits and other ranks have the rest. First writes the numbers that all
// ranks must get from each rank, [R, 3] in double: largest logit, sum of e^(logit - largest), and logit of the target (0 if
// another rank has it). Targets count from the first column of this rank and may lie outside. With `gradient`, the logits
// become e^(logit - largest).
void cross_entropy_begin(at::Tensor& logits_RV, const at::Tensor& targets_R, bool gradient, at::Tensor sums_R3);
// Then computes loss and gradient from the numbers of all K ranks, [K, R, 3]. This rank is rank `rank`.
void cross_entropy_end(at::Tensor& logits_RV, const at::Tensor& targets_R, const at::Tensor& sums_KR3, int64_t rank,
                       at::Tensor& loss_R, bool gradient, double scale);

void cross_entropy_aten(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                        double scale);

}  // namespace megalith::kernels
