#include "model/layers/pooling.h"

#include "base/error.h"
#include "model/local_rows.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// Calls run(sequence, first pooled row on this rank, number of rows, weight of each row).
template <class Run>
void for_each_pooled(const Pass& pass, Pooling pooling, const Run& run) {
  for_each_row_run(pass, [&](int64_t here, int64_t row, int64_t count) {
    const int64_t first = row - pass.first_sequence * pass.length, last = first + count;
    for (int64_t b = first / pass.length; b < pass.sequences && b * pass.length < last; b++) {
      const int64_t begin = b * pass.length;
      const PositionRange pooled = pooled_positions(pooling, pass.tokens_of(b));
      const int64_t from = std::max(first, begin + pooled.begin), to = std::min(last, begin + pooled.end);
      if (from < to) run(b, here + from - first, to - from, 1.0 / static_cast<double>(pooled.size()));
    }
  });
}

}  // namespace

PositionRange pooled_positions(Pooling pooling, int64_t tokens) {
  switch (pooling) {
    case Pooling::mean: break;
    case Pooling::cls: return {0, 1};
    case Pooling::last: return {tokens - 1, tokens};
  }
  return {0, tokens};
}

at::Tensor pool(const at::Tensor& x_NC, const Pass& pass, Pooling pooling, const Exchanges& exchanges) {
  const at::ScalarType wide = at::promoteTypes(x_NC.scalar_type(), at::kFloat);
  at::Tensor y_BC = tensor::zeros({pass.sequences, x_NC.size(1)}, wide);
  for_each_pooled(pass, pooling, [&](int64_t b, int64_t row, int64_t rows, double weight) {
    y_BC[b].add_(x_NC.narrow(0, row, rows).sum({0}, false, wide), weight);
  });
  for (Exchange* ranks : {exchanges.tensor, exchanges.context})
    if (ranks) ranks->all_reduce(y_BC);
  return y_BC;
}

at::Tensor pool_backward(const at::Tensor& g_BC, const at::Tensor& x_NC, const Pass& pass, Pooling pooling) {
  at::Tensor g_NC = tensor::zeros_like(x_NC);
  for_each_pooled(pass, pooling, [&](int64_t b, int64_t row, int64_t rows, double weight) {
    g_NC.narrow(0, row, rows).copy_(g_BC[b].mul(weight).expand({rows, g_BC.size(1)}));
  });
  return g_NC;
}

}  // namespace megalith
