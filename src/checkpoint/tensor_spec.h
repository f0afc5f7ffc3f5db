// Description of a tensor in a file: name, element type, shape. No data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace megalith {

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // empty: a scalar

  // Both assume that the product fits 63 bits. This is true for our own models, and checked when a file is read.
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t extent : shape) product *= extent;
    return product;
  }
  int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

std::string show_shape(const std::vector<int64_t>& shape);  // "[768, 2304]"

}  // namespace megalith
