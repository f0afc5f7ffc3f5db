// The difficulty of a sample as its mean loss under a trained model.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "config/config.h"
#include "data/sample_metrics.h"
#include "run/run_directory.h"

namespace megalith {

// Returns a name for the losses. It identifies the current weights of a checkpoint, a run or a Hugging Face folder, and the
// settings that change the losses. If the weights are trained further, the name changes.
std::string loss_named(const std::filesystem::path& checkpoint, const Config& config);

// Computes losses as a validation of the run does: with its objective and documents, and without dropout. Throws UserError
// if the model has other tokens, another kind of objective or a context that is too short. Borrows `data`.
std::unique_ptr<SampleMetric> make_loss_metric(const std::filesystem::path& checkpoint, const Config& config,
                                               const RunDirectory& run, const Dataset& data);

}  // namespace megalith
