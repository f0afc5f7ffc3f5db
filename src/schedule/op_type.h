// Everything that planner, checker, simulator and reports know about a kind of op. Each family of ops has one file in
// schedule/ops/ with a table of these; ops/table.cpp lists the families. What an op does to tensors is in engine/ops/.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "schedule/cost_model.h"
#include "schedule/rendezvous.h"
#include "schedule/schedule.h"
#include "schedule/values.h"

namespace megalith {

enum class Scope : uint8_t { step, block, micro };  // an op is of the whole step, of a block, or of a block's micro-batch
enum class Due : uint8_t { never, once, any };      // how often a step has it; any: as often as its values are needed

inline Cost overhead_only(const Schedule&, const Op&, const MachineSpeeds& speeds) { return overhead_cost(speeds); }
inline int64_t no_workspace(const Schedule&, const Op&) { return 0; }
inline Traffic no_traffic(const Schedule&, const Op&) { return {}; }
inline std::optional<Encounter> meets_no_rank(const RankSchedule&, const Op&) { return std::nullopt; }

struct OpType {
  OpKind kind{};
  std::string_view name;    // "load updated"; unique
  std::string_view about;   // what it does, for legends and stalls: "parameters from disk"
  std::string_view colour;  // "#rrggbb", in pictures
  char letter = '?';        // in timelines drawn as text; unique
  Scope scope = Scope::block;
  bool computes = false;    // runs where blocks compute: in device memory, with helper tasks between its products
  bool makes_activations = false;  // what it leaves counts as activations; else as workspace
  bool repeats = false;     // does work of the step a second time, so its exchanges are not useful work
  bool light = false;       // `colour` is light: names in it are dark
  // From the meaning of a step, not from what the passes write: the checker compares the two.
  Due (*due)(const Schedule&, BlockId, MicroId) = nullptr;
  void (*effects)(const Schedule&, const Op&, Effects& out) = nullptr;
  Cost (*cost)(const Schedule&, const Op&, const MachineSpeeds&) = overhead_only;
  int64_t (*workspace)(const Schedule&, const Op&) = no_workspace;  // bytes, where the op runs
  Traffic (*traffic)(const Schedule&, const Op&) = no_traffic;
  std::optional<Encounter> (*meets)(const RankSchedule&, const Op&) = meets_no_rank;
};

// Throws Bug for a kind that no family has.
const OpType& type_of(OpKind kind);
// All kinds, by number.
std::span<const OpType* const> op_types();

// Adds ops while it lives: for tests. Not thread-safe; `types` must outlive it.
class ExtraOps {
 public:
  explicit ExtraOps(std::span<const OpType> types);
  ~ExtraOps();
  ExtraOps(const ExtraOps&) = delete;
  ExtraOps& operator=(const ExtraOps&) = delete;

 private:
  std::span<const OpType> types_;
};

// What a step moves over disk and device link when every update is pending.
inline Traffic traffic_of(const Schedule& schedule, const Op& op) { return type_of(op.kind).traffic(schedule, op); }
Traffic traffic_of(const Schedule& schedule);

}  // namespace megalith
