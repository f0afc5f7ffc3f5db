// How fast this machine is, measured once and kept in the user's cache folder: what predictions are made from.
#pragma once
#include <cstdint>
#include <filesystem>

#include "config/model_shape.h"
#include "model/facts.h"
#include "schedule/costs.h"

namespace megalith {

// Speeds for a model's own shapes: matrix products of its layers and head, weighted by their work, and passes
// over memory. Measures what the cache file does not have yet (at most a few seconds).
MachineSpeeds calibrate(const ModelShape& shape, const MicroBatchShape& micro, int64_t threads,
                        const std::filesystem::path& disk);

// Where measurements are kept: $XDG_CACHE_HOME/megalith, ~/.cache/megalith or, without a home, nowhere.
std::filesystem::path calibration_file();

}  // namespace megalith
