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
  MemoryUse disk;      // in spill files
  MemoryUse device;    // at the peak of the device that computes, where there is one
  Bytes device_budget; // 0: no device
  Bytes device_most;   // of its memory, whatever runs at once
  Bytes budget;                 // of one rank
  int64_t host_ranks = 1;       // that share memory.ram
  ProcessBound bound;           // saves included, whatever runs at once
  bool fits = true;
  std::string strategy;         // what was adapted, in one line
  std::vector<Suggestion> suggestions;        // single settings that would make the run fit
};

MemoryTable memory_table(const Plan& plan);
MemoryTable memory_table(const Shortfall& shortfall);

// Returns the bytes that a schedule has on disk: spilled blocks and offloaded inputs.
MemoryUse on_disk(const Schedule& step);

std::string show(const MemoryTable& table);          // rows for people
nlohmann::json to_json(const MemoryTable& table);

}  // namespace megalith
