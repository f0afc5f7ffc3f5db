#include "schedule/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "schedule/order.h"

namespace megalith {
namespace {

class Together {
 public:
  explicit Together(std::span<const RankSchedule> ranks) : ranks_(ranks) {}

  std::vector<Problem> run() {
    number_ops();
    find_meetings();
    if (problems_.empty()) check_attendance();
    if (problems_.empty()) check_turns();
    if (problems_.empty()) check_circle();
    return problems_;
  }

 private:
  size_t node(size_t rank, OpId op) const { return first_[rank] + static_cast<size_t>(op); }
  const Op& op_at(size_t node) const { return ranks_[rank_of(node)].schedule->ops[node - first_[rank_of(node)]]; }
  size_t rank_of(size_t node) const {
    return static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), node) - first_.begin()) - 1;
  }
  std::string say(size_t node) const {
    return fmt::format("{} on rank {}", describe(*ranks_[rank_of(node)].schedule, op_at(node)), rank_of(node));
  }
  template <class... Args>
  void report(fmt::format_string<Args...> reason, Args&&... args) {
    problems_.push_back({kNoOp, fmt::format(reason, std::forward<Args>(args)...)});
  }

  void number_ops() {
    for (const RankSchedule& rank : ranks_) {
      first_.push_back(count_);
      count_ += rank.schedule->ops.size();
    }
  }

  // How many ranks it takes.
  size_t expected(const Meeting& it) const {
    if (it.column >= 0) return 2;
    return static_cast<size_t>(std::count_if(ranks_.begin(), ranks_.end(), [&](const RankSchedule& rank) {
      return (it.stage < 0 || rank.schedule->division.stages.here == it.stage) && (it.share < 0 || rank.share == it.share) &&
             (it.experts < 0 || rank.experts == it.experts);
    }));
  }

  void find_meetings() {
    for (size_t rank = 0; rank < ranks_.size(); rank++) {
      const auto meetings = meetings_of(ranks_[rank]);
      for (size_t op = 0; op < meetings.size(); op++) {
        if (!meetings[op]) continue;
        const size_t at = node(rank, static_cast<OpId>(op));
        meetings_[*meetings[op]].push_back(at);
        of_[at] = *meetings[op];
      }
    }
  }

  void check_attendance() {
    for (const auto& [it, nodes] : meetings_)
      if (nodes.size() != expected(it))
        report("{} meets {} of {} ranks", say(nodes.front()), nodes.size(), expected(it));
  }

  // What goes one way between two ranks, or among the same ranks, is told apart by its turn alone: the turns must be
  // certain on each rank, and the same on all.
  void check_turns() {
    using Way = std::tuple<OpKind, int32_t, int32_t, int32_t, int32_t>;  // kind, column or stage, from and to stage or share
    std::map<Way, std::map<size_t, std::vector<size_t>>> turns;          // nodes, by rank
    for (const auto& [node, it] : of_) {
      const Schedule& schedule = *ranks_[rank_of(node)].schedule;
      const OpKind kind = it.kind == OpKind::reduce ? OpKind::gather : it.kind;  // one channel
      int32_t from = -1, to = -1;
      if (it.experts >= 0) {  // one channel, whatever the layer does
        turns[{OpKind::forward, it.column, it.stage, it.share, it.experts}][rank_of(node)].push_back(node);
        continue;
      }
      if (it.kind == OpKind::send || it.kind == OpKind::send_back) {
        from = schedule.stage(it.block);
        to = schedule.stage(it.block + 1);
        if (it.kind == OpKind::send_back) std::swap(from, to);
      }
      if (kind == OpKind::gather) from = ranks_[rank_of(node)].share;
      turns[{kind, it.column, it.stage, from, to}][rank_of(node)].push_back(node);
      if (it.kind == OpKind::reduce) turns[{it.kind, it.column, it.stage, -1, -1}][rank_of(node)].push_back(node);
    }
    std::vector<Order> orders;
    for (const RankSchedule& rank : ranks_) orders.emplace_back(*rank.schedule);
    for (const auto& [way, by_rank] : turns)
      for (const auto& [rank, list] : by_rank)
        for (size_t i = 0; i < list.size(); i++) {
          const auto op = [&](size_t at) { return static_cast<OpId>(list[at] - first_[rank]); };
          if (i > 0 && !orders[rank].before(op(i - 1), op(i)))
            return report("{} and {} go the same way, and nothing says which goes first", say(list[i - 1]), say(list[i]));
          const std::vector<size_t>& others = by_rank.begin()->second;
          if (i < others.size() && of_.at(list[i]) != of_.at(others[i]))
            return report("number {} of the exchanges by {} is {} but {}", i, name(std::get<0>(way)), say(list[i]),
                          say(others[i]));
        }
  }

  // Ops that meet are one node of the graph.
  void check_circle() {
    std::vector<size_t> group(count_);
    std::iota(group.begin(), group.end(), size_t{0});
    for (const auto& [it, nodes] : meetings_)
      for (size_t n : nodes) group[n] = nodes.front();
    std::vector<std::vector<size_t>> next(count_);
    std::vector<size_t> waits(count_, 0);
    const auto edge = [&](size_t before, size_t after) {
      next[group[before]].push_back(group[after]);
      waits[group[after]]++;
    };
    for (size_t rank = 0; rank < ranks_.size(); rank++) {
      const Schedule& schedule = *ranks_[rank].schedule;
      std::vector<size_t> last(kLanes, count_);
      for (OpId op = 0; op < static_cast<OpId>(schedule.ops.size()); op++) {
        size_t& lane = last[static_cast<size_t>(schedule.ops[op].lane)];
        if (lane != count_) edge(lane, node(rank, op));
        lane = node(rank, op);
        for (OpId after : schedule.ops[op].after) edge(node(rank, after), node(rank, op));
      }
    }
    std::vector<size_t> ready;
    size_t groups = 0, done = 0;
    for (size_t n = 0; n < count_; n++)
      if (group[n] == n) {
        groups++;
        if (waits[n] == 0) ready.push_back(n);
      }
    while (!ready.empty()) {
      const size_t n = ready.back();
      ready.pop_back();
      done++;
      for (size_t after : next[n])
        if (--waits[after] == 0) ready.push_back(after);
    }
    if (done == groups) return;
    std::string stuck;  // the first of every rank that waits
    std::vector<bool> named(ranks_.size(), false);
    for (size_t n = 0; n < count_; n++) {
      if (waits[group[n]] == 0 || named[rank_of(n)]) continue;
      named[rank_of(n)] = true;
      stuck += (stuck.empty() ? "" : "; ") + say(n);
    }
    report("ranks wait for each other in a circle: {}", stuck);
  }

  std::span<const RankSchedule> ranks_;
  std::vector<size_t> first_;  // node of a rank's first op
  size_t count_ = 0;
  std::map<Meeting, std::vector<size_t>> meetings_;
  std::map<size_t, Meeting> of_;  // by node: in the order of each rank's ops
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_together(std::span<const RankSchedule> ranks) { return Together(ranks).run(); }

}  // namespace megalith
