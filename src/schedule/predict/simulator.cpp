#include "schedule/predict/simulator.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "base/error.h"
#include "schedule/check/happens_before.h"

namespace megalith {
namespace {

class Simulator {
 public:
  Simulator(std::span<const RankSchedule> ranks, std::span<const std::span<const Cost>> costs) {
    MEGALITH_ASSERT(ranks.size() == costs.size());
    std::map<Rendezvous, size_t> known;
    for (size_t r = 0; r < ranks.size(); r++) {
      MEGALITH_ASSERT(ranks[r].host >= 0 && ranks[r].copies >= 1);
      Rank& rank = ranks_.emplace_back(ranks[r], costs[r]);
      if (rank.host >= hosts_.size()) hosts_.resize(rank.host + 1);
      for (const std::optional<Encounter>& encounter : encounters_of(ranks[r])) {
        if (!encounter) {
          rank.meeting.push_back(kNone);
          continue;
        }
        rank.meeting.push_back(known.try_emplace(encounter->at, attendance_.size()).first->second);
        if (known.size() > attendance_.size()) attendance_.emplace_back();
        attendance_[rank.meeting.back()].expected++;
      }
    }
  }

  std::vector<Simulation> run() {
    while (start_ready()) advance();
    std::vector<Simulation> results;
    for (Rank& rank : ranks_) {
      Simulation& result = rank.result;
      for (const Span& span : result.spans) MEGALITH_ASSERT(span.ran(), "ranks wait for each other");
      result.seconds = now_;
      result.stalls = stalls(rank.schedule, result.spans);
      result.at_peak = rank.memory.peak();
      result.peak_bytes = rank.memory.peak().total();
      result.peak_op = rank.memory.peak_op();
      result.on_device = rank.device.peak();
      results.push_back(std::move(result));
    }
    return results;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  using Load = std::array<double, kResources>;  // of each resource, the sum of what running ops would use alone

  struct LaneState {
    size_t next = 0;     // position of the op that runs or waits
    OpId running = kNoOp;
    bool waits = false;  // the running op is an exchange, and other ranks have not reached it
    double left = 0;     // remaining seconds of the running op, at the speed that it has alone
    double rate = 1;     // the part of that speed that it gets now
    Resource limit{};    // the resource that slows it down if rate < 1
    bool works() const { return running != kNoOp && !waits; }
  };

  struct Rank {
    Rank(const RankSchedule& rank, std::span<const Cost> c)
        : schedule(*rank.schedule), host(static_cast<size_t>(rank.host)), copies(rank.copies), costs(c), order(schedule),
          memory(schedule), device(schedule, Tier::device), done(schedule.ops.size(), false) {
      MEGALITH_ASSERT(c.size() == schedule.ops.size(), "{} costs for {} ops", c.size(), schedule.ops.size());
      MEGALITH_ASSERT(order.cycle().empty(), "ops wait in a cycle");
      result.spans.resize(schedule.ops.size());
    }
    const Schedule& schedule;
    size_t host;
    double copies;
    std::span<const Cost> costs;
    HappensBefore order;
    MemoryLedger memory, device;
    std::vector<bool> done;
    std::vector<size_t> meeting;  // by op: index into attendance_, or kNone
    std::array<LaneState, kLanes> lanes{};
    Load load{};
    Simulation result;
  };

  struct Attendance {
    size_t expected = 0;
    double seconds = 0;               // of the rank that needs the longest time
    std::vector<LaneState*> present;
  };

  // Starts every op that is ready. Returns false if no op runs any more.
  bool start_ready() {
    for (Rank& rank : ranks_)
      for (size_t l = 0; l < kLanes; l++) {
        LaneState& lane = rank.lanes[l];
        const std::vector<OpId>& ops = rank.order.lane(static_cast<Lane>(l));
        if (lane.running != kNoOp || lane.next == ops.size()) continue;
        const OpId op = ops[lane.next];
        const std::vector<OpId>& after = rank.schedule.ops[op].after;
        if (std::all_of(after.begin(), after.end(), [&](OpId a) { return rank.done[a]; })) start(rank, lane, op);
      }
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return std::any_of(rank.lanes.begin(), rank.lanes.end(), [](const LaneState& lane) { return lane.works(); });
    });
  }

  void start(Rank& rank, LaneState& lane, OpId op) {
    lane.running = op;
    lane.left = rank.costs[op].seconds;
    rank.result.spans[op].start = now_;
    rank.memory.start(op);
    rank.device.start(op);
    if (rank.meeting[op] == kNone) return;
    Attendance& meeting = attendance_[rank.meeting[op]];
    lane.waits = true;
    meeting.present.push_back(&lane);
    meeting.seconds = std::max(meeting.seconds, lane.left);
    if (meeting.present.size() < meeting.expected) return;
    for (LaneState* one : meeting.present) {
      one->waits = false;
      one->left = meeting.seconds;
    }
  }

  void sum_loads() {
    for (Load& host : hosts_) host = {};
    for (Rank& rank : ranks_) {
      rank.load = {};
      for (const LaneState& lane : rank.lanes)
        for (size_t r = 0; lane.works() && r < kResources; r++) rank.load[r] += rank.costs[lane.running].use[r];
      for (size_t r = 0; r < kResources; r++) hosts_[rank.host][r] += rank.copies * rank.load[r];
    }
  }

  // Sets the rate of each op. If the running ops together ask for more of a resource than there is, each is slowed down in
  // proportion.
  void share_resources(Rank& rank) {
    for (LaneState& lane : rank.lanes) {
      lane.rate = 1;
      for (size_t r = 0; lane.works() && r < kResources; r++) {
        const auto resource = static_cast<Resource>(r);
        const double load = is_shared_by_ranks(resource) ? hosts_[rank.host][r] : rank.load[r];
        if (rank.costs[lane.running].use[r] <= 0 || load * lane.rate <= 1) continue;
        lane.rate = 1 / load;
        lane.limit = resource;
      }
    }
  }

  // Advances the clock to the moment when the next op ends.
  void advance() {
    double step = std::numeric_limits<double>::infinity();
    sum_loads();
    for (Rank& rank : ranks_) {
      share_resources(rank);
      for (const LaneState& lane : rank.lanes)
        if (lane.works()) step = std::min(step, lane.left / lane.rate);
    }
    now_ += step;
    for (Rank& rank : ranks_) {
      if (waits_for_ranks(rank)) rank.result.waited_for_ranks += step;
      for (size_t l = 0; l < kLanes; l++) {
        if (!rank.lanes[l].works()) continue;
        rank.result.busy[l] += step;
        advance(rank, rank.lanes[l], step);
      }
    }
  }

  void advance(Rank& rank, LaneState& lane, double step) {
    if (lane.rate < 1) rank.result.slowed[static_cast<size_t>(lane.limit)] += step * (1 - lane.rate);
    const bool ends = lane.left / lane.rate <= step * (1 + 1e-12);
    lane.left = ends ? 0 : lane.left - step * lane.rate;
    if (!ends) return;
    rank.result.spans[lane.running].end = now_;
    rank.memory.finish(lane.running);
    rank.device.finish(lane.running);
    rank.done[lane.running] = true;
    lane.running = kNoOp;
    lane.next++;
  }

  static bool waits_for_ranks(const Rank& rank) {
    const LaneState& compute = rank.lanes[static_cast<size_t>(Lane::compute)];
    if (compute.works() || compute.next == rank.order.lane(Lane::compute).size()) return false;
    return std::any_of(rank.lanes.begin(), rank.lanes.end(), [](const LaneState& lane) { return lane.waits; });
  }

  std::deque<Rank> ranks_;
  std::vector<Load> hosts_;
  std::vector<Attendance> attendance_;
  double now_ = 0;
};

}  // namespace

Simulation simulate(const Schedule& schedule, std::span<const Cost> costs) {
  const RankSchedule alone{&schedule};
  return std::move(Simulator({&alone, 1}, {&costs, 1}).run().front());
}

std::vector<Simulation> simulate_ranks(std::span<const RankSchedule> ranks, std::span<const std::vector<Cost>> costs) {
  return Simulator(ranks, std::vector<std::span<const Cost>>(costs.begin(), costs.end())).run();
}

}  // namespace megalith
