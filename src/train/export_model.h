// A model's weights and tokenizer as a Hugging Face folder, piece by piece: memory does not grow with the model.
#pragma once
#include <filesystem>
#include <optional>

#include "checkpoint/dtype.h"

namespace megalith {

// `from`: a checkpoint, a run or a Hugging Face folder, checked tensor by tensor. Empty `dtype`: as stored, float32 where
// tensors differ. `out` must be missing or empty.
void export_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> dtype);

}  // namespace megalith
