#include "schedule/check/checker.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "schedule/op_type.h"
#include "schedule/values.h"
#include "schedule/predict/memory.h"
#include "schedule/check/happens_before.h"

namespace megalith {
namespace {

bool within_scope(const Schedule& schedule, Scope scope, const Op& op) {
  const bool has_block = op.block >= 0 && op.block <= schedule.head();
  const bool has_micro = op.micro >= 0 && op.micro < schedule.all_micros();
  switch (scope) {
    case Scope::step: return op.block == kNoBlock && op.micro == kNoMicro;
    case Scope::block: return has_block && op.micro == kNoMicro;
    case Scope::micro: return has_block && has_micro;
  }
  return false;
}

// Calls `visit(block, micro)` for every block and micro-batch that an op of this scope can have.
template <class Visit>
void for_each_in(const Schedule& schedule, Scope scope, const Visit& visit) {
  if (scope == Scope::step) return visit(kNoBlock, kNoMicro);
  for (BlockId block = 0; block <= schedule.head(); block++) {
    if (scope == Scope::block) visit(block, kNoMicro);
    for (MicroId micro = 0; scope == Scope::micro && micro < schedule.all_micros(); micro++) visit(block, micro);
  }
}

class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule) {}

  // Each check relies on the checks before it, so the first one that finds a problem is the last.
  std::vector<Problem> run(std::optional<Bytes> budget, std::optional<Bytes> device) {
    check_shape();
    if (problems_.empty()) check_completeness();
    if (problems_.empty()) check_references();
    if (!problems_.empty()) return problems_;
    const HappensBefore order(schedule_);
    check_cycle(order);
    if (!problems_.empty()) return problems_;
    states_.assign(value_count(schedule_), {});
    Effects effects;
    for (OpId op : order.sequence()) {
      effects_of(schedule_, schedule_.ops[op], effects);
      for (const Effect& effect : effects) {
        State& state = states_[value_index(schedule_, effect)];
        if (!std::exchange(state.seen, true)) {
          state.effect = effect;
          state.present = state.old = exists_on_entry(schedule_, effect);
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
    Effect effect{};              // the first access to the value, for its name in messages
    bool seen = false;
    bool present = false;
    bool old = false;             // the value is still as the previous step left it
    bool changed = false;
    int32_t added = 0;            // contributions so far
    OpId writer = kNoOp;          // last op that wrote the value
    std::vector<OpId> readers;    // ops that read the value since then
  };

  template <class... Args>
  void report(OpId op, fmt::format_string<Args...> reason, Args&&... args) {
    std::string text = fmt::format(reason, std::forward<Args>(args)...);
    problems_.push_back({op, op == kNoOp ? text : fmt::format("{} {}", describe(schedule_, op), text)});
  }

  void check_shape() {
    const BlockId head = static_cast<BlockId>(schedule_.blocks.size()) - 1;
    if (head < 1) return report(kNoOp, "a model has at least an embedding and a head");
    const BlockId tied = schedule_.blocks[head].tied_to;
    if (tied != kNoBlock && (tied < 0 || tied >= head)) {
      report(kNoOp, "the head is tied to block {}, which is not an earlier block", tied);
    }
    const size_t count = schedule_.blocks.size();
    if (!schedule_.placement.empty() && schedule_.placement.size() != count)
      report(kNoOp, "{} blocks have a placement, the model has {}", schedule_.placement.size(), count);
    if (!schedule_.keep.empty() && schedule_.keep.size() != count)
      report(kNoOp, "{} blocks have a keep setting, the model has {}", schedule_.keep.size(), count);
    if (!schedule_.offloads.empty() && schedule_.offloads.size() != count)
      report(kNoOp, "{} blocks have an offload setting, the model has {}", schedule_.offloads.size(), count);
    for (size_t block = 0; problems_.empty() && block < schedule_.offloads.size(); block++)
      if (schedule_.offloads[block] && schedule_.keeps(static_cast<BlockId>(block)) != Keep::input)
        report(kNoOp, "{} keeps no input to offload", schedule_.blocks[block].name);
    const std::vector<int32_t>& stages = schedule_.layout.stages.of;
    if (!stages.empty() && stages.size() != count)
      report(kNoOp, "{} blocks have a stage, the model has {}", stages.size(), count);
    if (schedule_.layout.device && schedule_.layout.sizes().ranks() > 1)
      report(kNoOp, "blocks on a device are not divided among {} ranks", schedule_.layout.sizes().ranks());
    if (schedule_.micros < 0) report(kNoOp, "a step cannot have {} micro-batches", schedule_.micros);
    if (schedule_.first_pass != (schedule_.scores_batch() && schedule_.training ? schedule_.micros : 0))
      report(kNoOp, "the loss does not fit a first pass over {} of {} "
                    "micro-batches", schedule_.first_pass, schedule_.micros);
    if (schedule_.training && schedule_.micros == 0)
      report(kNoOp, "a training step cannot have 0 micro-batches");
  }

  // Checks that the schedule has every op that is due once, exactly once, and no op that is never due. Ops that may occur
  // any number of times are not counted: the checks of the values that they use find a missing one.
  void check_completeness() {
    std::map<std::tuple<OpKind, BlockId, MicroId>, int> times;
    for (size_t id = 0; id < schedule_.ops.size(); id++) {
      const Op& op = schedule_.ops[id];
      const OpType& type = type_of(op.kind);
      const Due due = within_scope(schedule_, type.scope, op) ? type.due(schedule_, op.block, op.micro) : Due::never;
      if (due == Due::never) report(static_cast<OpId>(id), "is not part of this step");
      if (due == Due::once && times[{op.kind, op.block, op.micro}]++ == 1)
        report(static_cast<OpId>(id), "is done more than once");
    }
    for (const OpType* type : op_types())
      for_each_in(schedule_, type->scope, [&](BlockId block, MicroId micro) {
        if (type->due(schedule_, block, micro) != Due::once || times.contains({type->kind, block, micro})) return;
        report(kNoOp, "{} is "
                      "missing", describe(schedule_, {.kind = type->kind, .block = block, .micro = micro, .after = {}}));
      });
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

  void check_cycle(const HappensBefore& order) {
    if (!order.cycle().empty()) {
      constexpr size_t kShown = 6;
      std::string text;
      for (size_t i = 0; i < order.cycle().size() && i < kShown; i++) {
        text += fmt::format("{}{}", i == 0 ? "" : ", then for ", describe(schedule_, order.cycle()[i]));
      }
      if (order.cycle().size() > kShown) text += fmt::format(" and {} more", order.cycle().size() - kShown);
      return report(order.cycle().back(), "waits in a cycle, for {}", text);
    }
    for (size_t op = 0; op < schedule_.ops.size(); op++) {
      for (OpId after : schedule_.ops[op].after) {
        if (static_cast<size_t>(after) < op) continue;
        report(static_cast<OpId>(op), "is listed before {}, for which it waits", describe(schedule_, after));
      }
    }
  }

  void check_presence(OpId op, const Effect& effect, State& state) {
    auto value = [&] { return describe(schedule_, effect); };
    const int32_t whole = contributions(schedule_, effect);
    if (effect.access == Access::create) {
      if (state.present) report(op, "creates the {} a second time", value());
      state.present = true;
      state.old = false;
      return;
    }
    if (!state.present) return report(op, "has no {}", value());
    if (state.old && belongs_to_pending_update(effect) && effect.access != Access::consume)
      return report(op, "uses the {} of the step before", value());
    if (state.changed) return report(op, "uses the {} after the change for the next step", value());
    if (effect.access == Access::accumulate) {
      const int32_t expected = effect.micro == kNoMicro ? whole - 1 : effect.micro;
      if (state.added != expected) {
        report(op, "adds to the {} as contribution {} instead of {}", value(), state.added + 1, expected + 1);
      }
      state.added++;
      return;
    }
    if (state.added != whole) {
      report(op, "uses the {} with {} of {} contributions", value(), state.added, whole);
    }
    if (effect.access == Access::consume) state.present = false;
    if (effect.access == Access::overwrite) state.changed = true;
  }

  void check_race(OpId op, const Effect& effect, State& state, const HappensBefore& order) {
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
      if (!state.seen || !state.present || may_exist_on_exit(schedule_, state.effect)) continue;
      report(kNoOp, "the {} is left over at the end of the step", describe(schedule_, state.effect));
    }
  }

  void check_budget(const HappensBefore& order, Tier tier, Bytes budget) {
    const MemoryBound bound = memory_bound(schedule_, order, tier);
    if (bound.bytes <= budget.value) return;
    report(bound.op, "may raise {} to {}, above the budget of {}", tier == Tier::host ? "memory" : "the device's memory",
           show(Bytes(bound.bytes)), show(budget));
  }

  const Schedule& schedule_;
  std::vector<Problem> problems_;
  std::vector<State> states_;  // by value_index
};

}  // namespace

std::vector<Problem> check(const Schedule& schedule, std::optional<Bytes> budget, std::optional<Bytes> device) {
  return Checker(schedule).run(budget, device);
}

}  // namespace megalith
