// A checkpoint's weights and tokenizer as a Hugging Face folder, tensor by tensor.
#pragma once
#include <filesystem>

#include "checkpoint/dtype.h"

namespace megalith {

void export_model(const std::filesystem::path& from, const std::filesystem::path& out, DType dtype);

}  // namespace megalith
