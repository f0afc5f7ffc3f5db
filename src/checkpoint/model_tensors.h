// The tensors that a folder must have to be a model of some shape.
#pragma once
#include <filesystem>
#include <vector>

#include "checkpoint/head_tensors.h"
#include "checkpoint/tensor_spec.h"
#include "families/model_shape.h"

namespace megalith {

std::vector<TensorSpec> tensors_of(const ModelShape& shape, DType dtype);

// Throws UserError unless the folder has all tensors of the model with their shapes (WeightSource::check_matches). Reads
// headers. Reads values only if a tied head is stored in addition to its table.
void check_weights(const ModelShape& shape, const std::filesystem::path& folder, HeadUse head);

}  // namespace megalith
