// Ops that copy the state of a block between the host and the device that computes it.
#pragma once
#include "schedule/op_type.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind upload{17};    // copies the block's parameters to the device
inline constexpr OpKind download{18};  // moves the block's gradient from the device to the host

namespace device_family {

inline void download_effects(const Schedule& s, const Op& op, Effects& out) {
  out.gradient_of(s, op.block, Access::consume);
  out.create(Value::reduced_gradient, op.block);
}

inline Due on_device(const Schedule& s, BlockId, MicroId) { return s.layout.device ? Due::any : Due::never; }
inline Due on_device_in_training(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training && s.layout.device ? Due::once : Due::never;
}

inline Traffic upload_traffic(const Schedule& s, const Op& op) {
  return {.copied = s.layout.device ? computing_bytes(s.blocks[op.block]) : 0};
}
inline Traffic download_traffic(const Schedule& s, const Op& op) {
  return {.copied = s.layout.device ? kFloatBytes * s.blocks[op.block].parameters : 0};
}
inline Cost device_copy_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return copy_cost(speeds, static_cast<double>(traffic_of(s, op).copied));
}

inline constexpr OpType kTypes[] = {
    {.kind = upload, .name = "upload", .about = "copies parameters to the device", .colour = "#57b894", .letter = 'a',
     .due = on_device, .effects = parameters_from_master, .cost = device_copy_cost, .traffic = upload_traffic},
    {.kind = download, .name = "download", .about = "copies a gradient from the device",
     .colour = "#e8a33d", .letter = 'd',
     .due = on_device_in_training, .effects = download_effects, .cost = device_copy_cost, .traffic = download_traffic},
};

}  // namespace device_family
}  // namespace megalith::ops
