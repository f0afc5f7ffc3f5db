// The plan of a run, made before anything is allocated: micro-batch, schedules, predicted time and memory.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "engine/block_store.h"
#include "engine/stored_array.h"
#include "planner/plan_input.h"
#include "planner/rank_columns.h"
#include "planner/strategy.h"
#include "schedule/predict/costs.h"
#include "schedule/schedule.h"
#include "schedule/predict/simulator.h"

namespace megalith {

struct Plan {
  int64_t micro_batch = 1;      // sequences
  int32_t micros = 1;           // micro-batches per step
  int64_t threads = 1;
  Bytes budget;                 // budget of the whole process
  int64_t host_ranks = 1;       // ranks that share the host's memory, each with this budget
  Bytes process;                // memory of the process itself: code, runtime, tokenizer (planner/process.h)
  MemorySettings memory;
  MachineSpeeds speeds;         // speeds that predicted times are computed from
  std::vector<BlockFacts> blocks;
  Staging staging = Staging::scarce;  // staging for arrays that stream
  Strategy strategy;            // how the step fits the budget
  int32_t stage = 0;            // pipeline stage of this rank
  std::vector<Strategy> stages; // by stage; includes this stage
  Schedule step, step_with_save, final_save;
  Schedule evaluation, evaluation_of_one;  // the first uses the micro-batches of a step, the second uses one
  bool measured = true;         // speeds are measured on this machine; false: typical speeds, not for predicting time
  bool links_measured = true;   // speeds of exchanges between ranks are measured; false: those of an ordinary host
  std::vector<RankColumn> columns;  // ranks that are simulated
  Simulation predicted;         // simulation of `step`, including its waits for other stages
  std::vector<Simulation> predicted_stages;  // by stage, on one clock; includes this stage
  std::vector<std::string> warnings;  // about the predicted times, one line each
  std::vector<std::string> adapted;  // changes that make the run fit, one line each
  Bytes device_budget;          // memory of the device that computes; 0: the host computes
  Bytes predicted_peak() const { return Bytes(predicted.peak_bytes) + process; }
};

// Tells the planner if it may measure speeds that are not in the cache file yet (a few seconds).
enum class Measuring : uint8_t { allowed, forbidden };

// Values that all ranks of a run must plan with, so they must be equal on all ranks.
struct Agreed {
  MachineSpeeds speeds;  // measured by rank 0
  Bytes process;  // the largest of all ranks
  Bytes budget;   // budget per rank: the smallest of all ranks
};

// The other ranks of the run, if several ranks make the same plan.
struct PlanPeers {
  bool leads_host = true;  // this rank measures the host for all of its ranks
  std::vector<int32_t> host_of = {};  // by rank; empty: all are on one host
  std::string hosts = {};             // the host of every rank, as text; empty: one host
  // Both are collective; empty: there are no other ranks.
  std::function<void(Agreed&)> agree = {};  // makes the values equal on all ranks
  std::function<Links()> try_links = {};    // measures exchanges; returns the same on all ranks
};

// Chooses everything that the settings leave open. The micro-batch changes computed numbers, so it depends only on shapes
// and budget. Recomputation, spilling and the window do not change numbers: simulation finds the fastest that fit. Checks
// the schedules and simulates the step. Throws DoesNotFit, with a breakdown and settings that would help, if nothing fits.
// If measuring is forbidden and a measurement is missing, it uses typical speeds and sets `measured` to false.
Plan make_plan(const PlanInput& input, Measuring measuring = Measuring::allowed, const PlanPeers& peers = {});

// The part of make_plan that needs only shapes and budget. Throws DoesNotFit if no strategy fits. Takes milliseconds.
void check_fits(const PlanInput& input);

// Returns the plan for steps of another shape, with the same number of micro-batches. `input` is the input of `plan`.
Plan with_shape(Plan plan, const PlanInput& input, const StepShape& shape);

// For a plan that spills: returns the smallest window that fits and is about as fast as the fastest. It uses the times of a
// step that ran instead of calibration: `measured` has the spans of ran.step, whose shape may differ from that of `plan`.
// The window does not change computed numbers.
int32_t window_by_measurement(const Plan& plan, const Plan& ran, std::span<const Span> measured);
Plan with_window(Plan plan, const PlanInput& input, int32_t window);

}  // namespace megalith
