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
  // What was kept first and last, to look at.
  const at::Tensor& first() const { return tensors_.front(); }
  const at::Tensor& last() const { return tensors_.back(); }
  // Forgets all but the first `count`.
  void shorten(size_t count) {
    MEGALITH_ASSERT(count <= tensors_.size(), "{} of {} tensors", count, tensors_.size());
    tensors_.resize(count);
  }
  bool empty() const { return tensors_.empty(); }

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace megalith
