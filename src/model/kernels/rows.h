// Vectorised operations of softmax on a row, shared by attention and the loss over the vocabulary.
#pragma once
#include <cstdint>

namespace megalith::kernels {

float row_max(const float* row, int64_t n);  // n > 0
// row = e^(scale row - shift); returns the sum.
float row_exp(float* row, int64_t n, float scale, float shift);
void row_scale(float* row, int64_t n, float factor);

// float64 is only for checks, so these are plain loops.
double row_max(const double* row, int64_t n);
double row_exp(double* row, int64_t n, double scale, double shift);
void row_scale(double* row, int64_t n, double factor);

}  // namespace megalith::kernels
