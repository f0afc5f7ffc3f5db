// A model family: the models that share one architecture. A family is a table of numbers, words and functions; its
// folder families/NAME defines them. The rest of the program asks the table and never compares families.
//
//   shape.cpp         the table, defaults, checks, presets
//   parameters.cpp    the parameters of each block
//   hugging_face.cpp  config.json in both directions, names in weight files
//   facts.cpp         what a micro-batch costs, in operations and bytes
//   blocks.cpp        the maths, with LibTorch (families/blocks.h)
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string_view>
#include <vector>

#include "families/block_spec.h"
#include "families/model_shape.h"

namespace megalith {

class HfFields;
class ShapeCheck;
struct RankSizes;

// Fields of ModelShape that some families do not have. If a family does not have a field, the field keeps its default.
struct ShapeFields {
  bool kv_heads = false;  // grouped-query attention; without it, kv_heads is heads
  bool head_dim = false;
  bool rope_theta = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool token_types = false;
  bool experts = false;
};

// A known model.
struct Preset {
  std::string_view name;
  std::string_view about;  // the source of the numbers
  // ffn and kv_heads are 0 if fill_defaults computes them, so that they follow an overridden hidden or heads
  ModelShape shape;
};

// Names in Hugging Face's files.
struct HfNames {
  struct Pair {
    std::string_view table, head;
  };
  struct Ending {
    std::string_view now, old;
  };
  struct Copy {
    std::string_view parameter, name;
  };
  std::span<const std::string_view> model_types;       // values of model_type that this family reads
  std::span<const std::string_view> own_model_types;   // model_type values that only we write
  std::string_view heads_key;                          // config.json: the number of heads
  std::string_view prefix;                             // prefix of tensor names; models without a head leave it out
  std::span<const Pair> tied;                          // tensors with the same values if the head is tied
  // tensors that transformers expects but does not compute with; files contain a copy of `parameter` there
  std::span<const Copy> copies;
  std::span<const Ending> old_endings;                 // endings of tensor names in old files
  std::span<const std::string_view> buffers;           // endings of stored tensors that are not parameters
  std::span<const std::string_view> other_heads;       // prefixes of tensors for tasks that we do not train
};

struct Family {
  std::string_view name;       // model.arch
  bool bidirectional = false;  // positions see later positions: masked objective, no generation
  ShapeFields uses;
  ModelShape (*defaults)() = nullptr;       // shape before any field is given; sizes are 0
  void (*fill)(ModelShape& shape) = nullptr;  // sets ffn from hidden; called if ffn is 0
  // Throws UserError for a shape that the family does not allow, in addition to the checks for all families
  // (shape_check.h). Null if there are no more checks.
  void (*check)(const ModelShape& shape, const ShapeCheck& check) = nullptr;
  std::span<const Preset> (*presets)() = nullptr;
  // Returns the blocks from the embedding to the head, with the parameters that a rank of the mesh has. list_blocks
  // sets the offsets. The order gives each parameter its number, which is the key of its random numbers. Never change
  // the order.
  std::vector<BlockSpec> (*parameters)(const ModelShape& shape, const Mesh& mesh) = nullptr;
  // Returns what a micro-batch costs in this block, on one rank.
  BlockCosts (*facts)(const BlockSpec& block, const RankSizes& sizes) = nullptr;
  HfNames (*hf_names)() = nullptr;
  // Read and write config.json, except the keys that all families share (checkpoint/hf_config.h).
  void (*read_config)(const HfFields& fields, ModelShape& shape) = nullptr;
  void (*write_config)(const ModelShape& shape, nlohmann::ordered_json& config) = nullptr;
};

// Returns the shape of a family before any field is given. context, norm_eps, tied and token_types are as in its
// papers.
ModelShape default_shape(const Family& family);

// Computes fields that are still 0 from the other fields: ffn, kv_heads, top_k and ffn of the experts.
void fill_defaults(ModelShape& shape);

}  // namespace megalith
