// Where blocks are computed when that is not the host's memory: bounded memory, reached by copies. The engine knows this
// interface alone; simulated_device.h has the one there is.
#pragma once
#include <ATen/core/Tensor.h>

#include "base/units.h"

namespace megalith {

class Device {
 public:
  virtual ~Device() = default;

  // A tensor in its memory, uninitialised. BudgetExceeded where that is full.
  virtual at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) = 0;
  // Copies between the host and the device, done when they return; types may differ: the host converts. Called on the
  // lanes of the same names, each by one thread, both at the same time.
  virtual void upload(const at::Tensor& from, const at::Tensor& to) = 0;
  virtual void download(const at::Tensor& from, const at::Tensor& to) = 0;

  virtual Bytes memory() const = 0;
};

}  // namespace megalith
