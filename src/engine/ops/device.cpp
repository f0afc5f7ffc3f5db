#include "schedule/ops/device.h"

#include "engine/op_handler.h"

namespace megalith {

std::span<const OpHandler> device_handlers() {
  static constexpr OpHandler all[] = {
      {ops::upload, [](StepState& step, const Op& op) { step.device.upload(op.block); }},
      {ops::download, [](StepState& step, const Op& op) { step.device.download(op.block); }},
  };
  return all;
}

}  // namespace megalith
