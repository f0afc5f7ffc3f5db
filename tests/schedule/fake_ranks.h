// Runs schedules with fake blocks, on one rank or on several ranks that exchange data. Lanes have random speeds.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/fake_blocks.h"
#include "schedule/random_schedules.h"
#include "schedule/check/rank_checker.h"
#include "schedule/ops/all.h"

namespace megalith {

using FakeState = std::vector<FakeBlocks::Buffer>;

class FakeRanks {
 public:
  // `ranks` and their schedules are borrowed.
  FakeRanks(std::span<const RankSchedule> ranks, Random& random) : ranks_(ranks), random_(random) {
    for (size_t r = 0; r < ranks.size(); r++) {
      const Schedule& schedule = *ranks[r].schedule;
      blocks_.emplace_back(schedule, 1, ranks[r].column);
      done_.emplace_back(schedule.ops.size(), false);
      left_ += schedule.ops.size();
      for (int l = 0; l < kLanes; l++) {
        LaneState& lane = lanes_.emplace_back();
        lane.rank = r;
        lane.speed = std::array{1, 30, 1000}[static_cast<size_t>(pick(random, 0, 2))];
      }
      for (size_t op = 0; op < schedule.ops.size(); op++)
        lanes_[r * kLanes + static_cast<size_t>(schedule.ops[op].lane)].queue.push_back(static_cast<OpId>(op));
    }
  }

  // Runs all ops. Ops of different lanes overlap if the schedules allow it. Returns false if some ops can never start or
  // never meet.
  bool run() {
    while (left_ > 0) {
      LaneState* lane = choose();
      if (lane == nullptr) return false;
      step(*lane);
    }
    return true;
  }

  FakeState state() const {
    FakeState all;
    for (const FakeBlocks& blocks : blocks_) {
      const FakeState one = blocks.state();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

 private:
  using Buffer = FakeBlocks::Buffer;

  struct LaneState {
    size_t rank = 0;
    int32_t speed = 1;
    std::vector<OpId> queue;
    size_t next = 0;
    std::function<void()> running;  // writes the results of the op that has begun
    bool waits = false;             // waits for other ranks to reach the exchange
    std::optional<Buffer> given;    // its own data, if it read them when it reached the exchange
  };

  // Channels carry numbers without names. So exchanges on a channel are matched in the order in which the ranks reach them.
  enum class Channel { replicas, shares, experts, everyone, writers, forward, backward, table };
  using Way = std::tuple<Channel, int32_t, int32_t, int32_t>;  // and stage or column; for two stages, also from and to
  struct Rendezvous {
    Way way;
    size_t side = 0, sides = 0;  // with two sides, the sender is the first
  };

  std::optional<Rendezvous> meeting_of(size_t rank, const Op& op) const {
    const Schedule& schedule = *ranks_[rank].schedule;
    const auto pair = [&](Channel channel, BlockId from, BlockId to, bool sends) {
      return Rendezvous{{channel, ranks_[rank].column, schedule.stage(from), schedule.stage(to)}, sends ? 0u : 1u, 2};
    };
    const BlockId head = schedule.head();
    switch (op.kind) {
      case ops::gather_parameters:
      case ops::reduce_gradient: {
        // Among tensor ranks, each gathers only its part of a block. All of them take part in sums of gradients.
        const bool all = op.kind == ops::reduce_gradient;
        const int32_t stage = schedule.layout.stage(), share = ranks_[rank].tensor_rank;
        Rendezvous it{{all && schedule.layout.sizes().tensor > 1 ? Channel::shares : Channel::replicas, stage, all ? 0 : share, 0}};
        for (size_t r = 0; r < ranks_.size(); r++) {
          if (ranks_[r].schedule->layout.stage() != stage || (!all && ranks_[r].tensor_rank != share)) continue;
          it.side += r < rank;
          it.sides++;
        }
        return it;
      }
      case ops::forward:
      case ops::recompute:
      case ops::backward: {
        if (schedule.layout.sizes().expert == 1 || schedule.blocks[op.block].forward.exchanges[Axis::expert].calls == 0)
          return std::nullopt;
        const RankSchedule& me = ranks_[rank];
        const int32_t stage = schedule.layout.stage();
        Rendezvous it{{Channel::experts, stage, me.tensor_rank, me.experts}};
        for (size_t r = 0; r < ranks_.size(); r++) {
          const RankSchedule& other = ranks_[r];
          if (other.schedule->layout.stage() != stage || other.tensor_rank != me.tensor_rank || other.experts != me.experts)
            continue;
          it.side += r < rank;
          it.sides++;
        }
        return it;
      }
      case ops::all_reduce_totals: return Rendezvous{{Channel::everyone, 0, 0, 0}, rank, ranks_.size()};
      case ops::commit: return Rendezvous{{Channel::writers, 0, 0, 0}, rank, ranks_.size()};
      case ops::send_activation: return pair(Channel::forward, op.block, op.block + 1, true);
      case ops::receive_activation: return pair(Channel::forward, op.block, op.block + 1, false);
      case ops::send_output_gradient: return pair(Channel::backward, op.block + 1, op.block, true);
      case ops::receive_output_gradient: return pair(Channel::backward, op.block + 1, op.block, false);
      case ops::sync_tied_table: return pair(Channel::table, op.block, head, schedule.holds(op.block));
      case ops::sync_tied_gradient: return pair(Channel::table, head, op.block, !schedule.holds(op.block));
      default: return std::nullopt;
    }
  }

  bool able(const LaneState& lane) const {
    if (lane.running) return true;
    if (lane.waits || lane.next == lane.queue.size()) return false;
    const std::vector<OpId>& after = ranks_[lane.rank].schedule->ops[lane.queue[lane.next]].after;
    return std::all_of(after.begin(), after.end(), [&](OpId op) { return done_[lane.rank][op]; });
  }

  // Returns a random lane that can begin or end an op, more often a fast one. Null if no lane can.
  LaneState* choose() {
    int32_t sum = 0;
    weights_.clear();
    for (const LaneState& lane : lanes_) sum += weights_.emplace_back(able(lane) ? lane.speed : 0);
    if (sum == 0) return nullptr;
    int32_t at = pick(random_, 0, sum - 1);
    size_t l = 0;
    while (at >= weights_[l]) at -= weights_[l++];
    return &lanes_[l];
  }

  void step(LaneState& lane) {
    const OpId op = lane.queue[lane.next];
    if (lane.running) {
      std::exchange(lane.running, nullptr)();
      done_[lane.rank][op] = true;
      lane.next++;
      left_--;
      return;
    }
    FakeBlocks& blocks = blocks_[lane.rank];
    const auto meeting = meeting_of(lane.rank, ranks_[lane.rank].schedule->ops[op]);
    if (!meeting) {
      lane.running = blocks.begin(op, {});
      return;
    }
    // An exchange may read its data at once, or when the other ranks have reached it.
    const bool rows = std::get<0>(meeting->way) == Channel::experts;  // exchanged inside a running layer
    if (!rows && pick(random_, 0, 1) == 1) lane.given = blocks.gives(op);
    lane.waits = true;
    auto& sides = waiting_[meeting->way];
    sides.resize(meeting->sides);
    sides[meeting->side].push_back(&lane);
    if (std::any_of(sides.begin(), sides.end(), [](const auto& side) { return side.empty(); })) return;
    if (rows) run_together(sides);
    else meet(sides);
  }

  // Rows are exchanged only between ranks that run the same op on the same layer. Otherwise the ranks wait forever.
  void run_together(std::vector<std::deque<LaneState*>>& sides) {
    const auto doing = [&](const LaneState& lane) {
      const Op& op = ranks_[lane.rank].schedule->ops[lane.queue[lane.next]];
      return std::tuple(op.kind, op.block, op.micro);
    };
    for (const auto& side : sides)
      if (doing(*side.front()) != doing(*sides.front().front())) return;
    for (auto& side : sides) {
      LaneState& lane = *side.front();
      side.pop_front();
      lane.waits = false;
      lane.running = blocks_[lane.rank].begin(lane.queue[lane.next], {});
    }
  }

  void meet(std::vector<std::deque<LaneState*>>& sides) {
    std::vector<Buffer> given;
    for (const auto& side : sides) {
      LaneState& lane = *side.front();
      given.push_back(lane.given ? *std::exchange(lane.given, std::nullopt)
                                 : blocks_[lane.rank].gives(lane.queue[lane.next]));
    }
    for (auto& side : sides) {
      LaneState& lane = *side.front();
      side.pop_front();
      lane.waits = false;
      lane.running = blocks_[lane.rank].begin(lane.queue[lane.next], given);
    }
  }

  std::span<const RankSchedule> ranks_;
  Random& random_;
  std::vector<FakeBlocks> blocks_;       // by rank
  std::vector<std::vector<bool>> done_;  // by rank and op
  size_t left_ = 0;
  std::vector<LaneState> lanes_;         // by rank and lane
  std::vector<int32_t> weights_;
  std::map<Way, std::vector<std::deque<LaneState*>>> waiting_;  // by side
};

// Returns the final state of all ranks, or nothing if they hang.
inline std::optional<FakeState> run_interleaved(std::span<const RankSchedule> ranks, Random& random) {
  FakeRanks fake(ranks, random);
  if (!fake.run()) return std::nullopt;
  return fake.state();
}

inline std::optional<FakeState> run_interleaved(const Schedule& schedule, Random& random) {
  const RankSchedule alone{&schedule};
  return run_interleaved({&alone, 1}, random);
}

}  // namespace megalith
