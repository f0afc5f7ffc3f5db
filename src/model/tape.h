// What one block's forward leaves for its backward, as a stack: backward takes tensors in the reverse order and
// so frees each as soon as it is used. Activations are thus data that the engine can count, and later pack,
// spill or rebuild, with no graph behind them.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace megalith {

class Tape {
 public:
  void keep(at::Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  at::Tensor take() {
    MEGALITH_ASSERT(!tensors_.empty(), "backward takes more than forward kept");
    at::Tensor tensor = std::move(tensors_.back());
    tensors_.pop_back();
    return tensor;
  }
  bool empty() const { return tensors_.empty(); }
  void clear() { tensors_.clear(); }

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace megalith
