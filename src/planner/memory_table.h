// How much memory and disk a run needs, by kind. `megalith memory` prints this table.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/units.h"
#include "planner/budget.h"
#include "planner/plan.h"
#include "planner/refusal.h"
#include "schedule/predict/memory.h"

namespace megalith {

struct MemoryTable {
  MemoryUse plain;     // at the peak of a step with everything in memory and nothing recomputed
  MemoryUse planned;   // at the peak of the step that will run; if the run does not fit, with the tightest strategy
  MemoryUse disk;      // bytes in spill files
  MemoryUse device;    // at the peak of the device that computes, if there is one
  Bytes device_budget; // 0: no device
  Bytes device_most;   // maximum device memory over all orders of the ops
  Bytes budget;                 // budget per rank
  int64_t host_ranks = 1;       // ranks that share memory.ram
  ProcessBound bound;           // for any order of the ops, including saves
  bool fits = true;
  std::string strategy;         // changes that make the run fit, in one line
  std::vector<Suggestion> suggestions;        // single settings that would make the run fit
};

MemoryTable memory_table(const Plan& plan);
MemoryTable memory_table(const Shortfall& shortfall);

// Returns the bytes that a schedule has on disk: spilled blocks and offloaded inputs.
MemoryUse on_disk(const Schedule& step);

std::string show(const MemoryTable& table);          // rows for people
nlohmann::json to_json(const MemoryTable& table);

}  // namespace megalith
