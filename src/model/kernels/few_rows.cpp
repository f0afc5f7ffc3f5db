#include "model/kernels/few_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

// Sixteen floats. The compiler puts them into one, two or four registers.
typedef float Wide __attribute__((vector_size(64)));
constexpr int64_t kWide = 16;

inline __attribute__((always_inline)) void load(Wide& to, const float* from) { std::memcpy(&to, from, sizeof(Wide)); }

inline __attribute__((always_inline)) float sum_of(const Wide& w) {
  float s[kWide];
  std::memcpy(s, &w, sizeof s);
  for (int64_t half = kWide / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; i++) s[i] += s[i + half];
  return s[0];
}

// Computes `outputs` outputs of `rows` rows. The order of each sum does not depend on these two counts.
template <int outputs, int rows>
inline __attribute__((always_inline)) void dot(const float* x, int64_t in, const float* w, const float* bias, float* y,
                                               int64_t out) {
  Wide sums[outputs][rows] = {};
  int64_t i = 0;
  for (; i + kWide <= in; i += kWide)
    for (int o = 0; o < outputs; o++) {
      Wide weight;
      load(weight, w + o * in + i);
      for (int r = 0; r < rows; r++) {
        Wide value;
        load(value, x + r * in + i);
        sums[o][r] += weight * value;
      }
    }
  for (int o = 0; o < outputs; o++)
    for (int r = 0; r < rows; r++) {
      float sum = sum_of(sums[o][r]);
      for (int64_t rest = i; rest < in; rest++) sum += w[o * in + rest] * x[r * in + rest];
      y[r * out + o] = bias ? sum + bias[o] : sum;
    }
}

struct Product {
  const float* x;     // [rows, in]
  const float* w;
  const float* bias;  // null: no bias
  float* y;           // [rows, out]
  int64_t rows, in, out;
};

// Computes outputs [begin, end) of all rows, from a matrix [out, in].
MEGALITH_VECTORISED void by_outputs(const Product& p, int64_t begin, int64_t end) {
  constexpr int64_t tile = 8;  // matrix rows that stay in the cache while all rows of x pass over them
  for (int64_t first = begin; first < end; first += tile) {
    const int64_t last = std::min(first + tile, end);
    int64_t r = 0;
    for (; r + 4 <= p.rows; r += 4)
      for (int64_t o = first; o < last; o++)
        dot<1, 4>(p.x + r * p.in, p.in, p.w + o * p.in, p.bias ? p.bias + o : nullptr, p.y + r * p.out + o, p.out);
    for (; r < p.rows; r++) {
      int64_t o = first;
      for (; o + 4 <= last; o += 4)
        dot<4, 1>(p.x + r * p.in, p.in, p.w + o * p.in, p.bias ? p.bias + o : nullptr, p.y + r * p.out + o, p.out);
      for (; o < last; o++)
        dot<1, 1>(p.x + r * p.in, p.in, p.w + o * p.in, p.bias ? p.bias + o : nullptr, p.y + r * p.out + o, p.out);
    }
  }
}

// Adds the terms of inputs [begin, end) to all outputs, from a matrix [in, out]. Reads the matrix in memory order.
MEGALITH_VECTORISED void by_inputs(const Product& p, int64_t begin, int64_t end, float* __restrict y) {
  int64_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const float *w0 = p.w + i * p.out, *w1 = w0 + p.out, *w2 = w1 + p.out, *w3 = w2 + p.out;
    for (int64_t r = 0; r < p.rows; r++) {
      const float* x = p.x + r * p.in + i;
      const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
      float* to = y + r * p.out;
      for (int64_t o = 0; o < p.out; o++) to[o] = to[o] + x0 * w0[o] + x1 * w1[o] + x2 * w2[o] + x3 * w3[o];
    }
  }
  for (; i < end; i++)
    for (int64_t r = 0; r < p.rows; r++) {
      const float x0 = p.x[r * p.in + i];
      for (int64_t o = 0; o < p.out; o++) y[r * p.out + o] += x0 * p.w[i * p.out + o];
    }
}

constexpr int64_t kWorthAThread = 1 << 14;  // matrix elements

void product_by_inputs(const Product& p) {
  // The inputs are split over the threads, so each thread has its own sums. The calling thread adds them up in order.
  const int64_t parts = std::clamp<int64_t>(p.in * p.out / kWorthAThread, 1, at::get_num_threads());
  const int64_t each = (p.in / parts + 3) / 4 * 4, size = p.rows * p.out;
  thread_local std::vector<float> others;
  others.assign(static_cast<size_t>((parts - 1) * size), 0.0f);
  float* sums = others.data();
  for (int64_t r = 0; r < p.rows; r++)
    if (p.bias)
      std::copy_n(p.bias, p.out, p.y + r * p.out);
    else
      std::fill_n(p.y + r * p.out, p.out, 0.0f);
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; part++) {
      const int64_t begin = std::min(p.in, part * each), end = part + 1 == parts ? p.in : std::min(p.in, begin + each);
      by_inputs(p, begin, end, part == 0 ? p.y : sums + (part - 1) * size);
    }
  });
  for (int64_t part = 0; part + 1 < parts; part++)
    for (int64_t n = 0; n < size; n++) p.y[n] += sums[part * size + n];
}

}  // namespace

bool takes_few_rows(const at::Tensor& x_RI, const at::Tensor& weight) {
  return x_RI.size(0) <= kFewRows && x_RI.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         x_RI.is_contiguous() && weight.is_contiguous();
}

at::Tensor few_rows_product(const at::Tensor& x_RI, const at::Tensor& weight, MatrixOrder order, const at::Tensor& bias) {
  const bool out_in = order == MatrixOrder::out_in;
  at::Tensor y_RO = tensor::empty({x_RI.size(0), weight.size(out_in ? 0 : 1)}, x_RI.options());
  Product p{x_RI.const_data_ptr<float>(), weight.const_data_ptr<float>(),
            bias.defined() ? bias.const_data_ptr<float>() : nullptr, y_RO.mutable_data_ptr<float>(),
            x_RI.size(0), x_RI.size(1), y_RO.size(1)};
  if (out_in)
    at::parallel_for(0, p.out, std::max<int64_t>(8, kWorthAThread / std::max<int64_t>(1, p.in)),
                     [&](int64_t begin, int64_t end) { by_outputs(p, begin, end); });
  else
    product_by_inputs(p);
  return y_RO;
}

}  // namespace megalith::kernels
