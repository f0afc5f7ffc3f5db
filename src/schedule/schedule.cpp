#include "schedule/schedule.h"

#include "base/error.h"

namespace megalith {

namespace {

// Of `whole`, `experts` are what ranks with the same experts share.
int64_t share(int64_t whole, int64_t experts, const Sharding& sharding) {
  if (!sharding.slices()) return whole;
  const auto cut = [](int64_t n, int64_t ranks) { return (n + ranks - 1) / ranks; };
  return cut(whole - experts, sharding.replicas) + cut(experts, sharding.expert_replicas());
}

}  // namespace

int64_t Schedule::slice_elements(BlockId block) const {
  const BlockFacts& facts = blocks[static_cast<size_t>(block)];
  return share(facts.parameters, facts.expert_parameters, division.sharding);
}

int64_t Schedule::optimizer_slice_bytes(BlockId block) const {
  const BlockFacts& facts = blocks[static_cast<size_t>(block)];
  return share(facts.optimizer_bytes, facts.expert_optimizer_bytes, division.sharding);
}

ForwardPart BlockFacts::again(Keep keep, bool with_output) const {
  ForwardPart part{forward_flop, forward_touched_bytes};
  const auto leave_out = [&](const ForwardPart& other) {
    part.flop -= other.flop;
    part.touched_bytes -= other.touched_bytes;
  };
  if (keep == Keep::attention) leave_out(attention);
  if (!with_output) leave_out(output);
  return part;
}

std::string_view name(OpKind kind) {
  switch (kind) {
    case OpKind::count: return "count";
    case OpKind::forward: return "forward";
    case OpKind::loss: return "loss";
    case OpKind::recompute: return "recompute";
    case OpKind::backward: return "backward";
    case OpKind::weigh: return "weigh";
    case OpKind::fold: return "fold";
    case OpKind::norm: return "norm";
    case OpKind::clip: return "clip";
    case OpKind::update: return "update";
    case OpKind::renew: return "renew";
    case OpKind::fetch: return "fetch";
    case OpKind::drop: return "drop";
    case OpKind::clear: return "clear";
    case OpKind::stow: return "stow";
    case OpKind::park: return "park";
    case OpKind::unpark: return "unpark";
    case OpKind::upload: return "upload";
    case OpKind::download: return "download";
    case OpKind::gather: return "gather";
    case OpKind::reduce: return "reduce";
    case OpKind::total: return "total";
    case OpKind::send: return "send";
    case OpKind::receive: return "receive";
    case OpKind::send_back: return "send back";
    case OpKind::receive_back: return "receive back";
    case OpKind::lend: return "lend";
    case OpKind::collect: return "collect";
    case OpKind::save: return "save";
    case OpKind::commit: return "commit";
  }
  return "unknown op";
}

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
