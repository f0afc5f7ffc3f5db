// What a run will do and what it should take, decided before anything is allocated: micro-batch, schedules,
// predicted time and memory.
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
  int32_t micros = 1;           // a step
  int64_t threads = 1;
  Bytes budget;                 // of the whole process
  int64_t host_ranks = 1;       // that share the host's memory, each with such a budget
  Bytes process;                // of the process itself: code, runtime, tokenizer (planner/process.h)
  MemorySettings memory;
  MachineSpeeds speeds;         // what times are predicted from
  std::vector<BlockFacts> blocks;
  Staging staging = Staging::scarce;  // of what streams
  Strategy strategy;            // what brings it within the budget
  int32_t stage = 0;            // of the pipeline
  std::vector<Strategy> stages; // by stage, this one's among them
  Schedule step, step_with_save, final_save;
  Schedule evaluation, evaluation_of_one;  // of as many micro-batches as a step has, of one
  bool measured = true;         // the speeds are this machine's; false: typical ones, time is not predicted by them
  bool links_measured = true;   // those of exchanges between ranks are; false: they are an ordinary host's
  std::vector<RankColumn> columns;  // of ranks, as simulated
  Simulation predicted;         // of `step`, with what it waits for the other stages
  std::vector<Simulation> predicted_stages;  // by stage, in one clock; this one's among them
  std::vector<std::string> warnings;  // about the predicted times, a line each
  std::vector<std::string> adapted;  // what was changed to make it fit, a line each
  Bytes device_budget;          // of the device that computes; 0: the host does
  Bytes predicted_peak() const { return Bytes(predicted.peak_bytes) + process; }
};

// Whether speeds that no run has measured yet may be measured (some seconds).
enum class Measuring : uint8_t { allowed, forbidden };

// What all ranks of a run must plan with alike.
struct Agreed {
  MachineSpeeds speeds;  // rank 0's
  Bytes process;  // of the rank that has most
  Bytes budget;   // of a rank
};

// The other ranks of the run, where several make the same plan.
struct PlanPeers {
  bool leads_host = true;  // this rank measures the host for all of its ranks
  std::vector<int32_t> host_of = {};  // by rank; empty: all are on one host
  std::string hosts = {};             // which hosts they are, as text; empty: one host
  // Both are collective; empty: there are no other ranks.
  std::function<void(Agreed&)> agree = {};  // makes the figures of all ranks the same
  std::function<Links()> try_links = {};    // how long exchanges take, the same on all ranks
};

// Chooses what the settings leave open. What changes the numbers (the micro-batch) follows from shapes and budget
// alone; what does not (recomputation, spilling, the window) is the fastest by simulation of what fits. Checks the
// schedules and simulates the step. DoesNotFit, with a breakdown and the settings that would help, when nothing fits.
// Forbidden to measure, it takes typical speeds where a measurement is missing, and says so in `measured`.
Plan make_plan(const PlanInput& input, Measuring measuring = Measuring::allowed, const PlanPeers& peers = {});

// The part of make_plan that follows from shapes and budget alone: DoesNotFit if no strategy fits. Takes milliseconds.
void check_fits(const PlanInput& input);

// The same plan, cut into as many micro-batches, for steps of another shape. `input` is that of `plan`.
Plan with_shape(Plan plan, const PlanInput& input, const StepShape& shape);

// Of a plan that spills: the smallest window that fits and is as fast as any, judged by how long each lane's ops took
// in a step that ran (`measured`, of ran.step, which may be of another shape) instead of by calibration. The window changes
// no number.
int32_t window_by_measurement(const Plan& plan, const Plan& ran, std::span<const Span> measured);
Plan with_window(Plan plan, const PlanInput& input, int32_t window);

}  // namespace megalith
