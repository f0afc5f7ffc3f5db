#include "schedule/checker.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "schedule/effects.h"
#include "schedule/memory.h"
#include "schedule/order.h"

namespace megalith {
namespace {

// The ops that make up this step, from the blocks and micro-batches alone.
std::vector<Op> ops_of_step(const Schedule& schedule, bool saves) {
  std::vector<Op> ops;
  auto add = [&](OpKind kind, BlockId block = kNoBlock, MicroId micro = kNoMicro) {
    ops.push_back({.kind = kind, .block = block, .micro = micro, .after = {}});
  };
  const BlockId head = schedule.head();
  if (schedule.micros > 0) add(OpKind::count);
  for (MicroId micro = 0; micro < schedule.micros; micro++) {
    for (BlockId block = 0; block <= head; block++) {
      if (block < head && schedule.stage(block) != schedule.stage(block + 1)) {
        if (schedule.holds(block)) add(OpKind::send, block, micro);
        if (schedule.holds(block + 1)) add(OpKind::receive, block, micro);
        if (schedule.training && schedule.holds(block)) add(OpKind::receive_back, block, micro);
        if (schedule.training && schedule.holds(block + 1)) add(OpKind::send_back, block, micro);
      }
      if (!schedule.holds(block)) continue;
      if (!schedule.training) {
        add(OpKind::forward, block, micro);
      } else if (block == head) {
        add(OpKind::loss, block, micro);
      } else {
        add(OpKind::forward, block, micro);
        if (schedule.keeps(block) != Keep::all) add(OpKind::recompute, block, micro);
        if (schedule.parks_input(block)) add(OpKind::park, block, micro);
        if (schedule.parks_input(block)) add(OpKind::unpark, block, micro);
        add(OpKind::backward, block, micro);
        if (schedule.defers(block)) add(OpKind::weigh, block, micro);
      }
    }
  }
  for (BlockId block = 0; block <= head; block++) {
    if (!schedule.holds(block)) continue;
    const Placement placed = schedule.placed(block);
    if (placed != Placement::memory) add(OpKind::renew, block);
    if (schedule.training) {
      add(OpKind::norm, block);
      if (schedule.reduces()) add(OpKind::reduce, block);
      if (schedule.division.device) add(OpKind::download, block);
      if (placed == Placement::memory) add(OpKind::update, block);
      if (!schedule.gradient_stays(block)) add(OpKind::clear, block);
      if (placed == Placement::away) add(OpKind::stow, block);
    }
    if (saves) add(OpKind::save, block);
  }
  const BlockId table = schedule.tied_table();
  if (schedule.micros > 0 && schedule.table_is_lent() && (schedule.holds(table) || schedule.borrows(table))) {
    add(OpKind::lend, table);
    if (schedule.training) add(OpKind::collect, table);
    if (schedule.training && schedule.borrows(table)) add(OpKind::clear, table);
  }
  if (schedule.training && table != kNoBlock && schedule.holds(table)) add(OpKind::fold, table);
  if (schedule.division.ranks > 1 && schedule.micros > 0) add(OpKind::total);
  if (schedule.training) add(OpKind::clip);
  if (saves) add(OpKind::commit);
  return ops;
}

// How often these are done is the plan's choice: that parameters are there when needed, never twice and never at
// the end is what the things they make and take tell.
bool as_often_as_needed(const Schedule& schedule, const Op& op) {
  if (op.micro != kNoMicro || op.block < 0 || op.block > schedule.head()) return false;
  if (op.kind == OpKind::fetch) return schedule.holds(op.block) && schedule.placed(op.block) == Placement::away;
  if (op.kind == OpKind::gather) return schedule.holds(op.block) && schedule.slices();
  if (op.kind == OpKind::upload) return schedule.division.device;
  return op.kind == OpKind::drop && !schedule.parameters_stay(op.block) &&
         (schedule.holds(op.block) || schedule.borrows(op.block));
}

class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule) {}

  // Each stage relies on those before it, so the first that finds something is the last.
  std::vector<Problem> run(std::optional<Bytes> budget, std::optional<Bytes> device) {
    check_shape();
    if (problems_.empty()) check_completeness();
    if (problems_.empty()) check_references();
    if (!problems_.empty()) return problems_;
    const Order order(schedule_);
    check_circle(order);
    if (!problems_.empty()) return problems_;
    states_.assign(thing_count(schedule_), {});
    for (OpId op : order.sequence()) {
      for (const Effect& effect : effects(schedule_, schedule_.ops[op])) {
        State& state = states_[thing_index(schedule_, effect)];
        if (!std::exchange(state.seen, true)) {
          state.effect = effect;
          state.present = there_on_entry(schedule_, effect);
        }
        check_presence(op, effect, state);
        check_race(op, effect, state, order);
      }
    }
    check_leftovers();
    if (budget) check_budget(order, Tier::host, *budget);
    if (device) check_budget(order, Tier::device, *device);
    return problems_;
  }

 private:
  struct State {
    Effect effect{};              // the first that touched it, for its name
    bool seen = false;
    bool present = false;
    bool changed = false;
    int32_t added = 0;            // contributions so far
    OpId writer = kNoOp;          // last op that wrote it
    std::vector<OpId> readers;    // since then
  };

  template <class... Args>
  void report(OpId op, fmt::format_string<Args...> reason, Args&&... args) {
    std::string text = fmt::format(reason, std::forward<Args>(args)...);
    problems_.push_back({op, op == kNoOp ? text : fmt::format("{} {}", describe(schedule_, op), text)});
  }

  void check_shape() {
    const BlockId head = static_cast<BlockId>(schedule_.blocks.size()) - 1;
    if (head < 1) return report(kNoOp, "a model has an embedding and a head at least");
    const BlockId tied = schedule_.blocks[head].tied_to;
    if (tied != kNoBlock && (tied < 0 || tied >= head)) {
      report(kNoOp, "the head is tied to block {}, which is no block before it", tied);
    }
    const size_t count = schedule_.blocks.size();
    if (!schedule_.placement.empty() && schedule_.placement.size() != count)
      report(kNoOp, "{} blocks are placed, the model has {}", schedule_.placement.size(), count);
    if (!schedule_.keep.empty() && schedule_.keep.size() != count)
      report(kNoOp, "it is said of {} blocks what they keep, the model has {}", schedule_.keep.size(), count);
    if (!schedule_.parks.empty() && schedule_.parks.size() != count)
      report(kNoOp, "it is said of {} blocks whether they park, the model has {}", schedule_.parks.size(), count);
    for (size_t block = 0; problems_.empty() && block < schedule_.parks.size(); block++)
      if (schedule_.parks[block] && schedule_.keeps(static_cast<BlockId>(block)) != Keep::input)
        report(kNoOp, "{} has no input to park", schedule_.blocks[block].name);
    const std::vector<int32_t>& stages = schedule_.division.stages.of;
    if (!stages.empty() && stages.size() != count)
      report(kNoOp, "{} blocks have a stage, the model has {}", stages.size(), count);
    if (schedule_.division.device && schedule_.division.ranks > 1)
      report(kNoOp, "blocks on a device are not divided among {} ranks", schedule_.division.ranks);
    if (schedule_.micros < 0) report(kNoOp, "a step over {} micro-batches cannot be", schedule_.micros);
    if (schedule_.training && schedule_.micros == 0)
      report(kNoOp, "a step over 0 micro-batches trains nothing");
  }

  void check_completeness() {
    bool saves = false;
    for (const Op& op : schedule_.ops) saves |= op.kind == OpKind::save || op.kind == OpKind::commit;
    std::map<std::tuple<OpKind, BlockId, MicroId>, int> times;
    const std::vector<Op> needed = ops_of_step(schedule_, saves);
    for (const Op& op : needed) times[{op.kind, op.block, op.micro}] = 0;
    for (size_t op = 0; op < schedule_.ops.size(); op++) {
      const Op& it = schedule_.ops[op];
      if (as_often_as_needed(schedule_, it)) continue;
      auto found = times.find({it.kind, it.block, it.micro});
      if (found == times.end()) {
        report(static_cast<OpId>(op), "is no part of this step");
      } else if (found->second++ == 1) {
        report(static_cast<OpId>(op), "is done more than once");
      }
    }
    for (const Op& op : needed) {
      if (times[{op.kind, op.block, op.micro}] == 0) report(kNoOp, "{} is missing", describe(schedule_, op));
    }
  }

  void check_references() {
    for (size_t op = 0; op < schedule_.ops.size(); op++) {
      for (OpId after : schedule_.ops[op].after) {
        if (after < 0 || static_cast<size_t>(after) >= schedule_.ops.size()) {
          report(static_cast<OpId>(op), "waits for op {}, which does not exist", after);
        }
      }
    }
  }

  void check_circle(const Order& order) {
    if (!order.circle().empty()) {
      constexpr size_t kShown = 6;
      std::string text;
      for (size_t i = 0; i < order.circle().size() && i < kShown; i++) {
        text += fmt::format("{}{}", i == 0 ? "" : ", then for ", describe(schedule_, order.circle()[i]));
      }
      if (order.circle().size() > kShown) text += fmt::format(" and {} more", order.circle().size() - kShown);
      return report(order.circle().back(), "waits in a circle, for {}", text);
    }
    for (size_t op = 0; op < schedule_.ops.size(); op++) {
      for (OpId after : schedule_.ops[op].after) {
        if (static_cast<size_t>(after) < op) continue;
        report(static_cast<OpId>(op), "is listed before {}, for which it waits", describe(schedule_, after));
      }
    }
  }

  void check_presence(OpId op, const Effect& effect, State& state) {
    auto thing = [&] { return describe(schedule_, effect); };
    const int32_t whole = contributions(schedule_, effect);
    if (effect.touch == Touch::makes) {
      if (state.present) report(op, "makes the {} a second time", thing());
      state.present = true;
      return;
    }
    if (!state.present) return report(op, "has no {}", thing());
    if (state.changed) return report(op, "comes after the {} changed for the next step", thing());
    if (effect.touch == Touch::adds) {
      const int32_t turn = effect.micro == kNoMicro ? whole - 1 : effect.micro;
      if (state.added != turn) {
        report(op, "adds to the {} as number {} instead of {}", thing(), state.added + 1, turn + 1);
      }
      state.added++;
      return;
    }
    if (state.added != whole) {
      report(op, "uses the {} with {} of {} contributions", thing(), state.added, whole);
    }
    if (effect.touch == Touch::takes) state.present = false;
    if (effect.touch == Touch::changes) state.changed = true;
  }

  void check_race(OpId op, const Effect& effect, State& state, const Order& order) {
    auto ordered = [&](OpId other) {
      if (other == kNoOp || other == op || order.before(other, op)) return;
      report(op, "may run at the same time as {}, and both use the {}", describe(schedule_, other),
             describe(schedule_, effect));
    };
    ordered(state.writer);
    if (!effect.writes()) return state.readers.push_back(op);
    for (OpId reader : state.readers) ordered(reader);
    state.readers.clear();
    state.writer = op;
  }

  void check_leftovers() {
    for (const State& state : states_) {
      if (!state.seen || !state.present || there_on_exit(schedule_, state.effect)) continue;
      report(kNoOp, "the {} is left over at the end of the step", describe(schedule_, state.effect));
    }
  }

  void check_budget(const Order& order, Tier tier, Bytes budget) {
    const MemoryBound bound = memory_bound(schedule_, order, tier);
    if (bound.bytes <= budget.value) return;
    report(bound.op, "may bring {} to {}, beyond the budget of {}", tier == Tier::host ? "memory" : "the device's memory",
           show(Bytes(bound.bytes)), show(budget));
  }

  const Schedule& schedule_;
  std::vector<Problem> problems_;
  std::vector<State> states_;  // by thing_index
};

}  // namespace

std::vector<Problem> check(const Schedule& schedule, std::optional<Bytes> budget, std::optional<Bytes> device) {
  return Checker(schedule).run(budget, device);
}

}  // namespace megalith
