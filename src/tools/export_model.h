// A model's weights and tokenizer as a Hugging Face folder, piece by piece: memory does not grow with the model.
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

// `from`: a checkpoint, a run or a Hugging Face folder, checked tensor by tensor. Empty `dtype`: as stored, float32 where
// tensors differ. `out` must be missing or empty.
void export_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> dtype);

// Parts of it, for folders that are made in other ways.
DType stored_type(const WeightSource& source);  // that all floating-point tensors have; float32 where they differ
std::vector<TensorSpec> tensors_of(const ModelShape& shape, DType dtype);
// `folder` is where tokenizer and companions come from; `read` gives elements of a tensor from the given one on.
using ReadTensor = std::function<void(const std::string& name, int64_t begin, std::span<float> values)>;
void write_model(const std::filesystem::path& folder, const ModelShape& shape, DType dtype, const std::filesystem::path& out,
                 const ReadTensor& read);

}  // namespace megalith
