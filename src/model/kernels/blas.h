// Matrix products on plain pointers, for kernels that cut their work into tiles. They call the BLAS that LibTorch carries.
// Inside a parallel region, each call runs on the calling thread only.
#pragma once
#include <cstdint>

namespace megalith::kernels {

// A matrix in row-major order whose rows are `stride` elements apart.
template <class Scalar>
struct Matrix {
  Scalar* data;
  int64_t stride;
};

enum class Transpose : bool { no, yes };

template <class Scalar>
struct Factor {
  Matrix<const Scalar> matrix;
  Transpose turn = Transpose::no;
};

// c[m, n] = a b, plus c if `add`. a is [m, k], or [k, m] to be transposed; b is [k, n], or [n, k].
void multiply(int64_t m, int64_t n, int64_t k, Factor<float> a, Factor<float> b, Matrix<float> c, bool add);
void multiply(int64_t m, int64_t n, int64_t k, Factor<double> a, Factor<double> b, Matrix<double> c, bool add);

// Frees the buffers that the library keeps for later products. No product may be running.
void free_library_buffers();

}  // namespace megalith::kernels
