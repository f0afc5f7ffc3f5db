// A model's shape as Hugging Face's config.json, both ways. Each family knows its own keys
// (families/*/hugging_face.cpp); the keys that all share are here.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "families/model_shape.h"

namespace megalith {

struct SpecialIds {
  std::optional<int64_t> begin, end;  // of the tokenizer, where known
};

// Text of a config.json that makes transformers (4 and 5) build exactly this model. `dtype` is that of the
// weights beside it.
std::string hf_config(const ModelShape& shape, const SpecialIds& ids = {}, DType dtype = DType::f32);

// The shape that a config.json describes. UserError naming the key for everything that would be another model
// than ours (other activations, scaled RoPE, biases where we have none, ...) and for values out of range.
ModelShape parse_hf_config(std::string_view text, const std::string& where);
ModelShape read_hf_config(const std::filesystem::path& dir);  // of dir/config.json
// The ids that dir/config.json names; of several ends the first.
SpecialIds read_hf_special_ids(const std::filesystem::path& dir);

}  // namespace megalith
