// Numbers for tests, and distances between results.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/normals.h"
#include "model/tensor_ops.h"

namespace megalith::testing_support {

// Returns standard normals, the same on every machine. Each tensor of a test needs its own `item`.
inline at::Tensor normal(std::vector<int64_t> shape, uint64_t item, at::ScalarType type = at::kDouble) {
  at::Tensor out = tensor::empty(shape, at::kDouble);
  Philox random(7, RandomUse::test, item);
  std::vector<float> values(static_cast<size_t>(out.numel()));
  fill_normals(random, 0, values);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<double>());
  return out.to(type);
}

// Returns ids below `n`.
inline at::Tensor ids(int64_t count, int64_t n, uint64_t item) {
  at::Tensor out = tensor::empty({count}, at::kLong);
  Philox random(8, RandomUse::test, item);
  for (int64_t i = 0; i < count; i++)
    out.mutable_data_ptr<int64_t>()[i] =
        static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(n)));
  return out;
}

inline std::vector<double> doubles(const at::Tensor& x) {
  at::Tensor wide = x.to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

// Returns the largest absolute difference, divided by the largest absolute value of `wanted`, or by `least` if that is
// larger. Set `least` if all wanted values may be only rounding noise.
inline double distance(const std::vector<double>& got, const std::vector<double>& wanted, double least = 1e-300) {
  if (got.size() != wanted.size()) return INFINITY;
  double worst = 0, largest = least;
  for (size_t i = 0; i < got.size(); i++) {
    if (!std::isfinite(got[i])) return INFINITY;
    worst = std::max(worst, std::abs(got[i] - wanted[i]));
    largest = std::max(largest, std::abs(wanted[i]));
  }
  return worst / largest;
}
inline double distance(const at::Tensor& got, const std::vector<double>& wanted, double least = 1e-300) {
  return distance(doubles(got), wanted, least);
}
inline double distance(const at::Tensor& got, const at::Tensor& wanted) {
  return got.sizes() == wanted.sizes() ? distance(doubles(got), doubles(wanted)) : INFINITY;
}

inline double dot(const at::Tensor& a, const at::Tensor& b) {
  std::vector<double> x = doubles(a), y = doubles(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); i++) sum += x[i] * y[i];
  return sum;
}

// Returns the derivative at 0 of a function of one number, by central differences of fourth order.
template <class Function>
double derivative(const Function& f, double h = 2e-4) {
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

}  // namespace megalith::testing_support
