// How fast this machine is, measured once (planner/measurements): what predictions are made from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

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
};

// Speeds for a model's own shapes: one of its layers and its head are run forward and back on a micro-batch, with
// cold caches as in a real step, and one effective speed is taken from both. Measures what the cache file does not
// have yet (a second or two). `disk` is where checkpoints will go; `spill` the folder of the disk tier, whose disk is
// measured (five seconds) unless it is empty. Neither has to exist yet.
MachineSpeeds calibrate(const Workload& work, int64_t threads, const std::filesystem::path& disk,
                        const std::filesystem::path& spill = {});

// The same without measuring: empty when the cache file lacks any of them.
std::optional<MachineSpeeds> known_speeds(const Workload& work, int64_t threads, const std::filesystem::path& disk,
                                          const std::filesystem::path& spill = {});

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
