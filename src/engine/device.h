// A device that computes blocks in its own bounded memory. Copies move data between that memory and the host's. The engine
// uses only this interface; simulated_device.h is the only implementation.
#pragma once
#include <ATen/core/Tensor.h>

#include "base/units.h"

namespace megalith {

class Device {
 public:
  virtual ~Device() = default;

  // Returns an uninitialised tensor in the device's memory. Throws BudgetExceeded if that memory is full.
  virtual at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) = 0;
  // These copy between the host and the device, and return when the copy is done. Types may differ: the host converts. Only
  // the upload lane calls upload, and only the download lane calls download. The two calls may run at the same time.
  virtual void upload(const at::Tensor& from, const at::Tensor& to) = 0;
  virtual void download(const at::Tensor& from, const at::Tensor& to) = 0;

  virtual Bytes memory() const = 0;
};

}  // namespace megalith
