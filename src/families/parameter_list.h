// Helpers to write parameter lists (families/*/parameters.cpp). Initial values are those of Hugging Face's
// _init_weights: normal(0, 0.02) for matrices and tables, ones and zeros for norms and biases.
#pragma once
#include <string>
#include <vector>

#include "families/block_spec.h"

namespace megalith {

inline constexpr double kInitialStd = 0.02;

inline ParameterSpec matrix(std::string name, std::vector<int64_t> shape, double deviation = kInitialStd) {
  return {std::move(name), std::move(shape), deviation, 0, true};
}
inline ParameterSpec ones(std::string name, int64_t n) { return {std::move(name), {n}, 0, 1, false}; }
inline ParameterSpec zeros(std::string name, int64_t n) { return {std::move(name), {n}, 0, 0, false}; }
inline ParameterSpec joined(ParameterSpec parameter) {
  parameter.joins_previous = true;
  return parameter;
}

BlockSpec embedding_block(std::vector<ParameterSpec> parameters);
BlockSpec layer_block(int64_t layer, std::vector<ParameterSpec> parameters);
BlockSpec head_block(std::vector<ParameterSpec> parameters);

// Cuts parameters over the ranks of the tensor axis. The dimension that is cut has `parts` equal parts (q, k, v). Each
// part is divided over the ranks.
class Cutter {
 public:
  explicit Cutter(const Mesh& mesh) : ranks_(mesh.size(Axis::tensor)), rank_(mesh.coordinate(Axis::tensor)) {}

  ParameterSpec rows(ParameterSpec p, int64_t parts = 1) const { return cut(std::move(p), 0, parts); }
  ParameterSpec columns(ParameterSpec p, int64_t parts = 1) const { return cut(std::move(p), 1, parts); }

 private:
  ParameterSpec cut(ParameterSpec p, size_t dimension, int64_t parts) const;
  int64_t ranks_, rank_;
};

}  // namespace megalith
