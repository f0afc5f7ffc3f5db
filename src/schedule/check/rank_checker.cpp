#include "schedule/check/rank_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "schedule/check/happens_before.h"

namespace megalith {
namespace {

class RankChecker {
 public:
  explicit RankChecker(std::span<const RankSchedule> ranks) : ranks_(ranks) {}

  std::vector<Problem> run() {
    number_ops();
    find_encounters();
    if (problems_.empty()) check_attendance();
    if (problems_.empty()) check_routes();
    if (problems_.empty()) check_cycle();
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

  // Number of ranks that must take part.
  size_t expected(const Rendezvous& it) const {
    if (it.pair) return 2;
    return static_cast<size_t>(std::count_if(ranks_.begin(), ranks_.end(), [&](const RankSchedule& rank) {
      return (it.stage < 0 || rank.schedule->layout.stage() == it.stage) &&
             (it.tensor_rank < 0 || rank.tensor_rank == it.tensor_rank) && (it.experts < 0 || rank.experts == it.experts);
    }));
  }

  void find_encounters() {
    for (size_t rank = 0; rank < ranks_.size(); rank++) {
      auto encounters = encounters_of(ranks_[rank]);
      for (size_t op = 0; op < encounters.size(); op++) {
        if (!encounters[op]) continue;
        const size_t at = node(rank, static_cast<OpId>(op));
        attendance_[encounters[op]->at].push_back(at);
        of_.emplace(at, std::move(*encounters[op]));
      }
    }
  }

  void check_attendance() {
    for (const auto& [it, nodes] : attendance_)
      if (nodes.size() != expected(it))
        report("{} meets {} of {} ranks", say(nodes.front()), nodes.size(), expected(it));
  }

  // Exchanges over one route differ only by their order. Each rank must define this order, and all ranks must agree.
  void check_routes() {
    std::map<Route, std::map<size_t, std::vector<size_t>>> used;  // nodes, by rank
    for (const auto& [node, encounter] : of_)
      for (const Route& route : encounter.routes) used[route][rank_of(node)].push_back(node);
    std::vector<HappensBefore> orders;
    for (const RankSchedule& rank : ranks_) orders.emplace_back(*rank.schedule);
    for (const auto& [route, by_rank] : used)
      for (const auto& [rank, list] : by_rank)
        for (size_t i = 0; i < list.size(); i++) {
          const auto op = [&](size_t at) { return static_cast<OpId>(list[at] - first_[rank]); };
          if (i > 0 && !orders[rank].before(op(i - 1), op(i)))
            return report("{} and {} use the same channel, but their order is not defined", say(list[i - 1]), say(list[i]));
          const std::vector<size_t>& others = by_rank.begin()->second;
          if (i < others.size() && of_.at(list[i]).at != of_.at(others[i]).at)
            return report("exchange {} of kind {} is {}, but {}", i, name(route.kind), say(list[i]), say(others[i]));
        }
  }

  // Searches the graph of waits for a cycle. Ops that meet are one node of the graph.
  void check_cycle() {
    std::vector<size_t> group(count_);
    std::iota(group.begin(), group.end(), size_t{0});
    for (const auto& [it, nodes] : attendance_)
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
    std::string stuck;  // the first waiting op of every rank
    std::vector<bool> named(ranks_.size(), false);
    for (size_t n = 0; n < count_; n++) {
      if (waits[group[n]] == 0 || named[rank_of(n)]) continue;
      named[rank_of(n)] = true;
      stuck += (stuck.empty() ? "" : "; ") + say(n);
    }
    report("ranks wait for each other in a cycle: {}", stuck);
  }

  std::span<const RankSchedule> ranks_;
  std::vector<size_t> first_;  // node of a rank's first op
  size_t count_ = 0;
  std::map<Rendezvous, std::vector<size_t>> attendance_;
  std::map<size_t, Encounter> of_;  // by node, so in the order of each rank's ops
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_ranks(std::span<const RankSchedule> ranks) { return RankChecker(ranks).run(); }

}  // namespace megalith
