// Everything that planner, checker, simulator and reports know about a kind of op. Each family of ops has one file in
// schedule/ops/ with a table of OpType. ops/table.cpp lists the families. engine/ops/ does the work on tensors.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "schedule/cost_model.h"
#include "schedule/rendezvous.h"
#include "schedule/schedule.h"
#include "schedule/values.h"

namespace megalith {

enum class Scope : uint8_t { step, block, micro };  // an op is for the whole step, a block, or a micro-batch of a block
enum class Due : uint8_t { never, once, any };      // how often a step has the op; any: as often as its values are needed

inline Cost overhead_only(const Schedule&, const Op&, const MachineSpeeds& speeds) { return overhead_cost(speeds); }
inline int64_t no_workspace(const Schedule&, const Op&) { return 0; }
inline Traffic no_traffic(const Schedule&, const Op&) { return {}; }
inline std::optional<Encounter> meets_no_rank(const RankSchedule&, const Op&) { return std::nullopt; }

struct OpType {
  OpKind kind{};
  std::string_view name;    // "load updated"; unique
  std::string_view about;   // description for legends and stalls: "reads parameters from disk"
  std::string_view colour;  // "#rrggbb", in pictures
  char letter = '?';        // in timelines drawn as text; unique
  Scope scope = Scope::block;
  bool computes = false;    // runs where blocks compute (device memory); does chores of lanes between its products
  bool makes_activations = false;  // its allocations count as activations, otherwise as workspace
  bool repeats = false;     // repeats work of the step, so its exchanges are not useful work
  bool light = false;       // `colour` is light, so text on it is dark
  // Derived from the meaning of a step, not from the ops that the passes write. The checker compares both.
  Due (*due)(const Schedule&, BlockId, MicroId) = nullptr;
  void (*effects)(const Schedule&, const Op&, Effects& out) = nullptr;
  Cost (*cost)(const Schedule&, const Op&, const MachineSpeeds&) = overhead_only;
  int64_t (*workspace)(const Schedule&, const Op&) = no_workspace;  // bytes, in the memory where the op runs
  Traffic (*traffic)(const Schedule&, const Op&) = no_traffic;
  std::optional<Encounter> (*meets)(const RankSchedule&, const Op&) = meets_no_rank;
};

// Throws Bug for a kind that no family has.
const OpType& type_of(OpKind kind);
// The types of all ops, ordered by number.
std::span<const OpType* const> op_types();

// Adds op types while the object lives. For tests. Not thread-safe. `types` must outlive it.
class ExtraOps {
 public:
  explicit ExtraOps(std::span<const OpType> types);
  ~ExtraOps();
  ExtraOps(const ExtraOps&) = delete;
  ExtraOps& operator=(const ExtraOps&) = delete;

 private:
  std::span<const OpType> types_;
};

// Bytes that an op, or a whole step, moves over disk and device link if every update is pending.
inline Traffic traffic_of(const Schedule& schedule, const Op& op) { return type_of(op.kind).traffic(schedule, op); }
Traffic traffic_of(const Schedule& schedule);

}  // namespace megalith
