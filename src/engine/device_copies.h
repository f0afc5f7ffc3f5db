// Copies the state and the inputs of blocks between the host and the device that computes them.
#pragma once
#include "engine/block_state.h"

namespace megalith {

class DeviceCopies {
 public:
  DeviceCopies(BlockStates& model, Device* device) : model_(model), device_(device) {}  // borrows both

  bool any() const { return device_ != nullptr; }
  void upload(BlockId id);    // parameters
  void download(BlockId id);  // gradient
  // Copies the input that a layer keeps. The caller owns the host copy.
  at::Tensor download_input(const at::Tensor& input);
  void upload_input(const at::Tensor& from, const at::Tensor& to) { device_->upload(from, to); }

 private:
  BlockStates& model_;
  Device* device_;  // null: blocks compute in host memory
};

}  // namespace megalith
