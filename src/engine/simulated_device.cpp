#include "engine/simulated_device.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "engine/device.h"
#include "memory/allocator.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements; the speed is limited after each piece

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(Bytes memory, double bandwidth);
  ~SimulatedDevice() override;
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) override;
  void upload(const at::Tensor& from, const at::Tensor& to) override;
  void download(const at::Tensor& from, const at::Tensor& to) override;
  Bytes memory() const override { return memory_; }

 private:
  // `bytes`: the bytes that cross the link.
  void copy(const at::Tensor& from, const at::Tensor& to, size_t bytes) const;

  Bytes memory_;
  double bandwidth_;
};

SimulatedDevice::SimulatedDevice(Bytes memory, double bandwidth) : memory_(memory), bandwidth_(bandwidth) {
  MEGALITH_ASSERT(memory.value > 0 && bandwidth > 0);
  set_allocation_budget(memory, Tier::device);
}

SimulatedDevice::~SimulatedDevice() { set_allocation_budget(Bytes(0), Tier::device); }

at::Tensor SimulatedDevice::empty(at::IntArrayRef sizes, at::ScalarType type) {
  TierScope here(Tier::device);
  return tensor::empty(sizes, at::TensorOptions().dtype(type));
}

void SimulatedDevice::upload(const at::Tensor& from, const at::Tensor& to) { copy(from, to, to.nbytes()); }

void SimulatedDevice::download(const at::Tensor& from, const at::Tensor& to) { copy(from, to, from.nbytes()); }

void SimulatedDevice::copy(const at::Tensor& from, const at::Tensor& to, size_t bytes) const {
  const at::Tensor source = from.view({-1}), target = to.view({-1});
  const int64_t count = source.numel();
  MEGALITH_ASSERT(count == target.numel(), "{} elements to {}", count, target.numel());
  const auto began = std::chrono::steady_clock::now();
  for (int64_t at = 0; at < count; at += kPiece) {
    const int64_t piece = std::min(kPiece, count - at);
    target.narrow(0, at, piece).copy_(source.narrow(0, at, piece));
    const double part = static_cast<double>(at + piece) / static_cast<double>(count);
    const std::chrono::duration<double> due(part * static_cast<double>(bytes) / bandwidth_);
    std::this_thread::sleep_until(began + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
  }
}

}  // namespace

std::shared_ptr<Device> simulated_device(Bytes memory, double bandwidth) {
  return std::make_shared<SimulatedDevice>(memory, bandwidth);
}

}  // namespace megalith
