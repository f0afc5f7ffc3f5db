// One entry of a schedule: the kind of op, its block and micro-batch, its lane, and the ops that it waits for.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

using BlockId = int32_t;  // position in Schedule::blocks; kNoBlock for ops of the whole step
using MicroId = int32_t;  // micro-batch number; kNoMicro for ops of a block's state or of the step
using OpId = int32_t;     // position in Schedule::ops
inline constexpr int32_t kNoBlock = -1;
inline constexpr int32_t kNoMicro = -1;
inline constexpr OpId kNoOp = -1;

// The constants are in schedule/ops/, one file per family. The type has one byte because other processes read it from the
// status page.
enum class OpKind : uint8_t {};

// `net` receives and runs collectives. `send` is a separate lane, so that two ranks can send to each other. `upload` and
// `download` copy to and from a device at the same time.
enum class Lane : uint8_t { compute, read, write, net, send, upload, download };
inline constexpr int kLanes = 7;

struct Op {
  OpKind kind;
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  Lane lane = Lane::compute;
  // Ops that must be done before this op starts. The earlier ops of its lane must be done, too. Passes list the whole data
  // flow here, even if the order of the lane implies it. So another pass can move an op to another lane.
  std::vector<OpId> after;
};

}  // namespace megalith
