#include "schedule/meeting.h"

#include <map>
#include <utility>

namespace megalith {
namespace {

using Turns = std::map<std::pair<OpKind, BlockId>, int32_t>;

std::optional<Meeting> meeting_of(const RankSchedule& rank, const Op& op, Turns& turns) {
  const Schedule& schedule = *rank.schedule;
  Meeting it{.kind = op.kind, .block = op.block, .micro = op.micro};
  switch (op.kind) {
    case OpKind::receive: it.kind = OpKind::send; [[fallthrough]];
    case OpKind::send: it.column = rank.column; return it;
    case OpKind::receive_back: it.kind = OpKind::send_back; [[fallthrough]];
    case OpKind::send_back: it.column = rank.column; return it;
    case OpKind::lend:
    case OpKind::collect: it.column = rank.column; return it;
    case OpKind::gather: it.share = rank.share; [[fallthrough]];
    case OpKind::reduce:  // summands of what is the same in all shares are added up, too
      it.stage = schedule.division.stages.here;
      it.turn = turns[{op.kind, op.block}]++;
      return it;
    // Rows travel to their experts and back while the layer runs.
    case OpKind::forward:
    case OpKind::recompute:
    case OpKind::backward:
      if (schedule.division.sharding.expert == 1 || schedule.blocks[op.block].expert_forward.calls == 0) return std::nullopt;
      it.stage = schedule.division.stages.here;
      it.share = rank.share;
      it.experts = rank.experts;
      return it;
    case OpKind::total: return it;
    // The files of a checkpoint are complete when all have written.
    case OpKind::commit: return schedule.division.ranks > 1 ? std::optional(it) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<std::optional<Meeting>> meetings_of(const RankSchedule& rank) {
  std::vector<std::optional<Meeting>> meetings;
  Turns turns;
  for (const Op& op : rank.schedule->ops) meetings.push_back(meeting_of(rank, op, turns));
  return meetings;
}

}  // namespace megalith
