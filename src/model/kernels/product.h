// Products of whole layers' matrices, cut over the threads by us: each thread multiplies its own block of the result
// with a product of its own, and nobody waits inside. (The library's own threading packs together and waits at every
// block of depth: 3-5% slower on a quiet machine, more on a busy one.)
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// a [M, K] times b [K, N]; either may be a transposed view. `row` [N] and `onto` [M, N] are added where defined: a
// bias and a residual.
at::Tensor product(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& row_N = {},
                   const at::Tensor& onto_MN = {});
// c = a b, c += a b.
void product_into(const at::Tensor& a_MK, const at::Tensor& b_KN, at::Tensor& c_MN, const at::Tensor& row_N = {});
void product_added(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& c_MN);

// How [M, N] is cut: a grid of blocks whose packing costs least, each a multiple of the library's own tiles.
struct Grid {
  int64_t rows = 1, columns = 1;        // blocks
  int64_t row_step = 0, column_step = 0;  // elements of a block; the last ones are smaller
};
Grid cut(int64_t m, int64_t n, int64_t k, int64_t threads);

}  // namespace megalith::kernels
