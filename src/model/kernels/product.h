// Products of whole matrices of a layer. We cut them over the threads: each thread computes its own block of the result with
// its own library call, and never waits for another thread. (In the threading of the library, threads pack together and wait
// at every block of depth. It is 3-5% slower on a quiet machine, and more on a busy one.)
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// Returns a [M, K] times b [K, N]. Both may be transposed views. Adds `row` [N] (a bias) and `onto` [M, N] (a residual) if
// they are defined.
at::Tensor product(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& row_N = {},
                   const at::Tensor& onto_MN = {});
// c = a b + row (if defined); c += a b.
void product_into(const at::Tensor& a_MK, const at::Tensor& b_KN, at::Tensor& c_MN, const at::Tensor& row_N = {});
void product_added(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& c_MN);

// How [M, N] is cut: a grid of blocks with the least cost of packing. Block sizes are multiples of the library's tiles.
struct Grid {
  int64_t rows = 1, columns = 1;        // blocks
  int64_t row_step = 0, column_step = 0;  // elements of a block; the last ones are smaller
};
Grid cut(int64_t m, int64_t n, int64_t k, int64_t threads);

}  // namespace megalith::kernels
