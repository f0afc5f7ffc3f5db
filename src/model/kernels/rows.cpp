#include "model/kernels/rows.h"

#include <algorithm>
#include <cmath>

#include "model/kernels/simd.h"

namespace megalith::kernels {

MEGALITH_VECTORISED
float row_max(const float* row, int64_t n) {
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; i++) largest = row[i] > largest ? row[i] : largest;
  return largest;
}

MEGALITH_VECTORISED
float row_exp(float* row, int64_t n, float scale, float shift) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) {
    const float e = exp_fast(row[i] * scale - shift);
    row[i] = e;
    sum += e;
  }
  return sum;
}

MEGALITH_VECTORISED
void row_scale(float* row, int64_t n, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) row[i] *= factor;
}

double row_max(const double* row, int64_t n) {
  double largest = row[0];
  for (int64_t i = 0; i < n; i++) largest = std::max(largest, row[i]);
  return largest;
}
double row_exp(double* row, int64_t n, double scale, double shift) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += row[i] = std::exp(row[i] * scale - shift);
  return sum;
}
void row_scale(double* row, int64_t n, double factor) {
  for (int64_t i = 0; i < n; i++) row[i] *= factor;
}

}  // namespace megalith::kernels
