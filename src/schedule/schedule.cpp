#include "schedule/schedule.h"

#include "base/error.h"
#include "schedule/op_type.h"

namespace megalith {

namespace {

// The size of this rank's slice. `whole` is the size of all state; the part `experts` of it is sliced only over the ranks
// that hold the same experts.
int64_t slice_of(int64_t whole, int64_t experts, const Layout& layout) {
  if (!layout.slices()) return whole;
  const auto cut = [](int64_t n, int64_t ranks) { return (n + ranks - 1) / ranks; };
  return cut(whole - experts, layout.replicas()) + cut(experts, layout.expert_replicas());
}

}  // namespace

int64_t Schedule::slice_elements(BlockId block) const {
  const BlockFacts& facts = blocks[static_cast<size_t>(block)];
  return slice_of(facts.parameters, facts.expert_parameters, layout.sizes());
}

int64_t Schedule::optimizer_slice_bytes(BlockId block) const {
  const BlockFacts& facts = blocks[static_cast<size_t>(block)];
  return slice_of(facts.optimizer_bytes, facts.expert_optimizer_bytes, layout.sizes());
}

BlockWork& BlockWork::operator+=(const BlockWork& other) {
  flop += other.flop;
  touched_bytes += other.touched_bytes;
  for (size_t axis = 0; axis < kAxes; axis++) {
    exchanges.by_axis[axis].calls += other.exchanges.by_axis[axis].calls;
    exchanges.by_axis[axis].bytes += other.exchanges.by_axis[axis].bytes;
  }
  return *this;
}

BlockWork& BlockWork::operator-=(const BlockWork& other) {
  flop -= other.flop;
  touched_bytes -= other.touched_bytes;
  for (size_t axis = 0; axis < kAxes; axis++) {
    exchanges.by_axis[axis].calls -= other.exchanges.by_axis[axis].calls;
    exchanges.by_axis[axis].bytes -= other.exchanges.by_axis[axis].bytes;
  }
  return *this;
}

BlockWork BlockCosts::again(Keep keep, bool with_output) const {
  BlockWork work = forward;
  if (keep == Keep::attention) work -= attention;
  if (!with_output) work -= output;
  return work;
}

std::string_view name(OpKind kind) { return type_of(kind).name; }

std::string_view name(Lane lane) {
  switch (lane) {
    case Lane::compute: return "compute";
    case Lane::read: return "read";
    case Lane::write: return "write";
    case Lane::net: return "net";
    case Lane::send: return "send";
    case Lane::upload: return "upload";
    case Lane::download: return "download";
  }
  return "unknown lane";
}

std::string describe(const Schedule& schedule, const Op& op) {
  std::string text(name(op.kind));
  if (op.block != kNoBlock) {
    bool known = op.block >= 0 && op.block < static_cast<BlockId>(schedule.blocks.size());
    text +=
        known ? fmt::format(" of {}", schedule.blocks[op.block].name) : fmt::format(" of block {}", op.block);
  }
  if (op.micro != kNoMicro) text += fmt::format(", micro-batch {}", op.micro);
  return text;
}

std::string describe(const Schedule& schedule, OpId op) {
  MEGALITH_ASSERT(op >= 0 && op < static_cast<OpId>(schedule.ops.size()), "op {}", op);
  return describe(schedule, schedule.ops[op]);
}

}  // namespace megalith
