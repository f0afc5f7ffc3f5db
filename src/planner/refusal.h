// Explains why a run does not fit, and which single settings would help.
#pragma once
#include <vector>

#include "base/error.h"
#include "planner/budget.h"
#include "planner/plan_input.h"
#include "planner/strategy.h"
#include "schedule/schedule.h"

namespace megalith {

struct Plan;

// A single setting that would make a run fit, and the memory that the process would then need.
struct Suggestion {
  std::string setting;  // key=value
  Bytes bytes;
};

// The numbers of a run that does not fit.
struct Shortfall {
  int64_t micro_batch = 1;
  Bytes budget;              // budget per rank
  int64_t host_ranks = 1;    // ranks that share memory.ram
  ProcessBound least;        // with the strategy that needs the least memory
  Strategy tightest;
  Schedule step;             // the step with that strategy
  Bytes device_budget, device_least;  // memory of the device that computes; 0: the host computes
  std::vector<Suggestion> suggestions;
};

struct DoesNotFit : UserError {
  DoesNotFit(Parts what, Shortfall why);  // the hint is replaced by the suggestions, if there are any
  Shortfall shortfall;
};

// Throws DoesNotFit for a plan whose micro-batch, budget and process are known.
[[noreturn]] void refuse(const Plan& plan, const PlanInput& input);

}  // namespace megalith
