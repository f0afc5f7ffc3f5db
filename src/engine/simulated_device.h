// A device that is none: its memory is this process's, counted apart and bounded; copies take the time that they would over
// a way of the given bandwidth. Blocks are computed by the same kernels, so that a schedule for a device runs, with every
// number as without one, where there is no device.
#pragma once
#include "engine/device.h"

namespace megalith {

class SimulatedDevice final : public Device {
 public:
  // `bandwidth`: bytes a second, each way. One at a time: the allocator has one account for it.
  SimulatedDevice(Bytes memory, double bandwidth);
  ~SimulatedDevice() override;
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) override;
  void upload(const at::Tensor& from, const at::Tensor& to) override;
  void download(const at::Tensor& from, const at::Tensor& to) override;
  Bytes memory() const override { return memory_; }

 private:
  // `bytes`: that travel.
  void copy(const at::Tensor& from, const at::Tensor& to, size_t bytes) const;

  Bytes memory_;
  double bandwidth_;
};

}  // namespace megalith
