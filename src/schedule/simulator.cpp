#include "schedule/simulator.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "schedule/order.h"

namespace megalith {
namespace {

class Simulator {
 public:
  Simulator(const Schedule& schedule, std::span<const Cost> costs)
      : schedule_(schedule),
        costs_(costs),
        order_(schedule),
        memory_(schedule),
        done_(schedule.ops.size(), false) {
    MEGALITH_ASSERT(costs.size() == schedule.ops.size(), "{} costs for {} ops", costs.size(),
                    schedule.ops.size());
    MEGALITH_ASSERT(order_.circle().empty(), "ops wait in a circle");
    result_.spans.resize(schedule.ops.size());
  }

  Simulation run() {
    while (start_ready()) advance();
    result_.seconds = now_;
    result_.busy = busy_seconds(schedule_, result_.spans);
    result_.stalls = stalls(schedule_, result_.spans);
    result_.at_peak = memory_.peak();
    result_.peak_bytes = memory_.peak().total();
    result_.peak_op = memory_.peak_op();
    return std::move(result_);
  }

 private:
  struct LaneState {
    size_t next = 0;     // position of the op that runs or waits
    OpId running = kNoOp;
    double left = 0;     // seconds of the running op, at the speed it has alone
    double rate = 1;     // part of that speed it gets now
    Resource limit{};    // that holds it back when rate < 1
  };

  // Starts every op whose turn it is; false when nothing runs any more.
  bool start_ready() {
    bool any = false;
    for (size_t l = 0; l < kLanes; l++) {
      LaneState& lane = lanes_[l];
      const std::vector<OpId>& ops = order_.lane(static_cast<Lane>(l));
      if (lane.running == kNoOp && lane.next < ops.size()) {
        const OpId op = ops[lane.next];
        const std::vector<OpId>& after = schedule_.ops[op].after;
        if (std::all_of(after.begin(), after.end(), [&](OpId a) { return done_[a]; })) {
          lane.running = op;
          lane.left = costs_[op].seconds;
          result_.spans[op].start = now_;
          memory_.start(op);
        }
      }
      any |= lane.running != kNoOp;
    }
    return any;
  }

  // Each op gets, of every resource it uses, its part of what all running ops ask for together.
  void share_resources() {
    std::array<double, kResources> load{};
    for (const LaneState& lane : lanes_) {
      for (size_t r = 0; lane.running != kNoOp && r < kResources; r++)
        load[r] += costs_[lane.running].share[r];
    }
    for (LaneState& lane : lanes_) {
      lane.rate = 1;
      for (size_t r = 0; lane.running != kNoOp && r < kResources; r++) {
        if (costs_[lane.running].share[r] <= 0 || load[r] * lane.rate <= 1) continue;
        lane.rate = 1 / load[r];
        lane.limit = static_cast<Resource>(r);
      }
    }
  }

  // To the moment when the next op ends.
  void advance() {
    share_resources();
    double step = std::numeric_limits<double>::infinity();
    for (const LaneState& lane : lanes_) {
      if (lane.running != kNoOp) step = std::min(step, lane.left / lane.rate);
    }
    now_ += step;
    for (LaneState& lane : lanes_) {
      if (lane.running == kNoOp) continue;
      if (lane.rate < 1) result_.slowed[static_cast<size_t>(lane.limit)] += step * (1 - lane.rate);
      const bool ends = lane.left / lane.rate <= step * (1 + 1e-12);
      lane.left = ends ? 0 : lane.left - step * lane.rate;
      if (!ends) continue;
      result_.spans[lane.running].end = now_;
      memory_.finish(lane.running);
      done_[lane.running] = true;
      lane.running = kNoOp;
      lane.next++;
    }
  }

  const Schedule& schedule_;
  std::span<const Cost> costs_;
  Order order_;
  MemoryLedger memory_;
  std::vector<bool> done_;
  std::array<LaneState, kLanes> lanes_{};
  double now_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Schedule& schedule, std::span<const Cost> costs) {
  return Simulator(schedule, costs).run();
}

}  // namespace megalith
