// Exports weights and tokenizer of a model as a Hugging Face folder. Works piece by piece, so memory does not grow with the
// model.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "checkpoint/reader.h"
#include "families/model_shape.h"

namespace megalith {

// `from` is a checkpoint, a run or a Hugging Face folder. All its tensors are checked. If `dtype` is empty, the tensors keep
// their stored type, or become float32 if their types differ. `out` must be missing or empty.
void export_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> dtype);

// The parts of export_model, for code that makes folders in other ways.
//
// Returns bf16 or f16 if all floating-point tensors have that type, else float32.
DType stored_type(const WeightSource& source);
// Tokenizer and small files are copied from `folder`. `read` fills `values` with elements of a tensor, starting at `begin`.
using ReadTensor = std::function<void(const std::string& name, int64_t begin, std::span<float> values)>;
void write_model(const std::filesystem::path& folder, const ModelShape& shape, DType dtype, const std::filesystem::path& out,
                 const ReadTensor& read);

}  // namespace megalith
