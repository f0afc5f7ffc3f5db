// A sample's mean loss under a trained model, as a difficulty.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "config/config.h"
#include "data/sample_metrics.h"
#include "run/run_directory.h"

namespace megalith {

// Names the values: the weights of a checkpoint, a run or a Hugging Face folder as they are now, and what else in the
// config decides which losses there are. Weights that were trained on have another name.
std::string loss_named(const std::filesystem::path& checkpoint, const Config& config);

// Losses as a validation of the run has them: its objective, its documents, no dropout. UserError where the model has
// other tokens, another kind of objective or too short a context. Borrows `data`.
std::unique_ptr<SampleMetric> make_loss_metric(const std::filesystem::path& checkpoint, const Config& config,
                                               const RunDirectory& run, const Dataset& data);

}  // namespace megalith
