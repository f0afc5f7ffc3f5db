#include "model/kernels/blas.h"

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*);
void mkl_serv_free_buffers() __attribute__((weak));  // only MKL has it

// MKL calls this once, before it chooses its kernels. Symbols of a program override those of its libraries, so MKL calls
// this function instead of its own. MKL's own function returns 0 on processors of other makers, even if they have all needed
// instructions. Then MKL does not use its best kernels, which are 8 to 29% faster on an EPYC with AVX2, depending on the
// shape. This function checks the instructions. Other BLAS libraries never call it.
__attribute__((visibility("default"), used)) int mkl_serv_intel_cpu_true() {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}
}

namespace megalith::kernels {
namespace {

// BLAS matrices are column-major: our c = a b is cᵀ = bᵀ aᵀ for BLAS. Its 32-bit sizes suffice: tiles are small, and strides
// are lengths of rows.
template <class Scalar>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const Scalar*, const Scalar*, const int*,
                      const Scalar*, const int*, const Scalar*, Scalar*, const int*);

template <class Scalar, Gemm<Scalar> gemm>
void call(int64_t m, int64_t n, int64_t k, Factor<Scalar> a, Factor<Scalar> b, Matrix<Scalar> c, bool add) {
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
  const int a_stride = static_cast<int>(a.matrix.stride), b_stride = static_cast<int>(b.matrix.stride);
  const int c_stride = static_cast<int>(c.stride);
  const Scalar one = 1, keep = add ? 1 : 0;
  gemm(b.turn == Transpose::yes ? "T" : "N", a.turn == Transpose::yes ? "T" : "N", &rows, &columns, &depth, &one,
       b.matrix.data, &b_stride, a.matrix.data, &a_stride, &keep, c.data, &c_stride);
}

}  // namespace

void multiply(int64_t m, int64_t n, int64_t k, Factor<float> a, Factor<float> b, Matrix<float> c, bool add) {
  call<float, sgemm_>(m, n, k, a, b, c, add);
}

void multiply(int64_t m, int64_t n, int64_t k, Factor<double> a, Factor<double> b, Matrix<double> c, bool add) {
  call<double, dgemm_>(m, n, k, a, b, c, add);
}

void free_library_buffers() {
  if (mkl_serv_free_buffers) mkl_serv_free_buffers();
}

}  // namespace megalith::kernels
