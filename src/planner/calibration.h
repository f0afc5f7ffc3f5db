// Measures how fast this machine is, once (planner/measurements.h). Predictions are made from these speeds.
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

// The computation of a run, as far as its speed depends on it.
struct Workload {
  ModelShape shape;
  MicroBatchShape micro;
  Precision precision = Precision::fp32;
  Objective objective = Objective::causal;
  Layout layout = {};  // calibration computes the part of its first rank
};

// The parts of a machine to measure. Links are measured separately (planner/links.h).
struct MachineUse {
  int64_t threads = 1;           // threads per rank
  std::filesystem::path disk;    // where checkpoints will go
  std::filesystem::path spill;   // folder of the disk tier; empty: no disk tier. Neither folder has to exist yet
  int32_t host_ranks = 1;        // ranks that share the machine
};

// Measures the speeds that the cache file does not have yet. Takes a few seconds, and five more for a disk tier.
MachineSpeeds calibrate(const Workload& work, const MachineUse& use);
// Returns the same without measuring, or nothing if the cache file lacks a speed.
std::optional<MachineSpeeds> known_speeds(const Workload& work, const MachineUse& use);
// Returns a warning for the user about measurements in the cache file (Measurements::warning), or an empty text.
std::string warning_about_speeds(const Workload& work, const MachineUse& use);

// The two halves of `calibrate`, for several ranks.
// calibrate_machine measures memory and disks. One rank of a host calls it while the others are idle.
// calibrate_products measures matrix products with the shapes of the model, in flop per second. It runs one layer and the
// head forward and backward on a micro-batch, with cold caches as in a real step. One effective speed follows from both. For
// a large model it runs smaller ones (planner/sample.h). `together`: all ranks of the host measure at the same time, because
// they will also compute at the same time.
MachineSpeeds calibrate_machine(const MachineUse& use);
double calibrate_products(const Workload& work, const MachineSpeeds& machine, bool together);

// Returns speeds of an ordinary machine with `threads` cores: good enough to compare strategies, not to predict times.
MachineSpeeds typical_speeds(int64_t threads);

// Returns the bytes that the matrix library kept after calibration of `work`. The library's buffers depend on the shapes of
// products and stay allocated. The size is in the cache file, so a run that finds its speeds there can count the buffers
// before they exist. Returns 1 byte if the size was never measured.
Bytes library_buffers(const Workload& work, int64_t threads);

// Runs a product, so that threads and buffers of the matrix library exist and count as memory of the process. First frees
// the buffers of earlier products (losses under a model), so that plans do not depend on them.
void start_matrix_library();

}  // namespace megalith
