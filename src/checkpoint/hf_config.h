// Converts a model's shape to and from Hugging Face's config.json. Each family handles its own keys
// (families/*/hugging_face.cpp). The keys that all families share are here.
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
  std::optional<int64_t> begin, end;  // special tokens of the tokenizer, if known
};

// Returns the text of a config.json from which transformers (4 and 5) builds exactly this model. `dtype` is the type of
// the weights.
std::string hf_config(const ModelShape& shape, const SpecialIds& ids = {}, DType dtype = DType::f32);

// Returns the shape that a config.json describes. Throws a UserError that names the key if a value is out of range,
// or if our model cannot compute the same: other activations, scaled RoPE, biases that we do not have, ...
ModelShape parse_hf_config(std::string_view text, const std::string& where);
// Reads dir/config.json. A folder of sentence-transformers gives a model that makes vectors.
ModelShape read_hf_config(const std::filesystem::path& dir);
// Returns the ids in dir/config.json. If there are several end ids, returns the first.
SpecialIds read_hf_special_ids(const std::filesystem::path& dir);

}  // namespace megalith
