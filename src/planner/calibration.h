// How fast this machine is, measured once (planner/measurements): what predictions are made from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/units.h"
#include "config/config.h"
#include "families/facts.h"
#include "schedule/predict/costs.h"

namespace megalith {

// What a run asks of the machine.
struct Workload {
  ModelShape shape;
  MicroBatchShape micro;
  Precision precision = Precision::fp32;
  Objective objective = Objective::causal;
  Layout layout = {};  // the first rank of it computes its part
};

// What of a machine is measured. Links are measured elsewhere (planner/links.h).
struct MachineUse {
  int64_t threads = 1;           // of a rank
  std::filesystem::path disk;    // where checkpoints will go
  std::filesystem::path spill;   // the folder of the disk tier; empty: none. Neither has to exist yet
  int32_t host_ranks = 1;        // that share the machine
};

// Measures what the cache file does not have yet (a few seconds; five more for a disk tier).
MachineSpeeds calibrate(const Workload& work, const MachineUse& use);
// The same without measuring: empty when the cache file lacks any of them.
std::optional<MachineSpeeds> known_speeds(const Workload& work, const MachineUse& use);
// What a user should know about the measurements in the cache file: Measurements::warning.
std::string warning_about_speeds(const Workload& work, const MachineUse& use);

// The two halves of `calibrate`, for ranks. The first is the machine's memory and disks: one rank of a host measures them
// while the others are idle. The second is the speed of products for a model's own shapes: one of its layers and its head
// are run forward and back on a micro-batch, with cold caches as in a real step, and one effective speed is taken from both
// (flop a second). Smaller ones stand for those of a large model (planner/sample.h). `together`: all ranks of the host measure it at the same time, as they will compute at the same time.
MachineSpeeds calibrate_machine(const MachineUse& use);
double calibrate_products(const Workload& work, const MachineSpeeds& machine, bool together);

// Of ordinary machines with that many cores: enough to compare strategies by, not to promise times.
MachineSpeeds typical_speeds(int64_t threads);

// What the matrix library came to keep when those were run: its buffers follow from the shapes of products and stay. As
// measured once, so that a run that finds its speeds in the cache counts them before they are there; next to nothing
// where that was never measured.
Bytes library_buffers(const Workload& work, int64_t threads);

// A product, so that threads and buffers of the matrix library exist: what the process takes then counts them. Buffers of
// products before (losses under a model) go first: plans do not depend on those.
void start_matrix_library();

}  // namespace megalith
