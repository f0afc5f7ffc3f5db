// Matrix products on plain pointers, for kernels that cut their work into tiles: the BLAS that LibTorch carries.
// Inside a parallel region each call runs on its own thread.
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

// c[m, n] = a b (+ c, where `add`); a is [m, k], or [k, m] to be transposed; b is [k, n], or [n, k].
void multiply(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Transpose turn_a, Matrix<const float> b,
              Transpose turn_b, Matrix<float> c, bool add);
void multiply(int64_t m, int64_t n, int64_t k, Matrix<const double> a, Transpose turn_a, Matrix<const double> b,
              Transpose turn_b, Matrix<double> c, bool add);

// Gives back what the library keeps for products to come. Not while any runs.
void free_library_buffers();

}  // namespace megalith::kernels
