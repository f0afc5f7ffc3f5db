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

// Fields of ModelShape that some families do not have. Where a family has no such field, the default stays.
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
  std::string_view about;  // where the numbers come from
  ModelShape shape;        // ffn and kv_heads are 0 where Family::fill gives the value, so that they follow an
                           // overridden hidden or heads
};

// The words of Hugging Face's files.
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
  std::span<const std::string_view> own_model_types;   // and those that only we write
  std::string_view heads_key;                          // config.json: the number of heads
  std::string_view prefix;                             // of tensors; bare models leave it out
  std::span<const Pair> tied;                          // tensors with the same values where the head is tied
  std::span<const Copy> copies;                        // tensors that transformers expects but does not compute with, and
                                                       // the parameter that files repeat there
  std::span<const Ending> old_endings;                 // of tensors in old files
  std::span<const std::string_view> buffers;           // last words of stored tensors that are no parameters
  std::span<const std::string_view> other_heads;       // first words of tensors for tasks that we do not train
};

struct Family {
  std::string_view name;       // model.arch
  bool bidirectional = false;  // positions see those after them: masked objective, no generation
  ShapeFields uses;
  ModelShape (*defaults)() = nullptr;       // before any field is given: sizes are 0
  void (*fill)(ModelShape& shape) = nullptr;  // gives ffn, where still 0, what the family makes of hidden
  // Refuses what the family cannot be, beyond what holds for all families (shape_check.h). Null: nothing more.
  void (*check)(const ModelShape& shape, const ShapeCheck& check) = nullptr;
  std::span<const Preset> (*presets)() = nullptr;
  // Blocks from the embedding to the head, with the parameters that a rank of the mesh has. Offsets are set by
  // list_blocks. The order numbers the parameters, and random numbers follow from these numbers: never change it.
  std::vector<BlockSpec> (*parameters)(const ModelShape& shape, const Mesh& mesh) = nullptr;
  // What a micro-batch costs in this block, on one rank.
  BlockCosts (*facts)(const BlockSpec& block, const RankSizes& sizes) = nullptr;
  HfNames (*hf_names)() = nullptr;
  // config.json without the keys that all families share (checkpoint/hf_config.h).
  void (*read_config)(const HfFields& fields, ModelShape& shape) = nullptr;
  void (*write_config)(const ModelShape& shape, nlohmann::ordered_json& config) = nullptr;
};

// A shape of this family before any field is given: context, norm_eps, tied, token_types as its papers have them.
ModelShape default_shape(const Family& family);

// Gives fields that are still 0 what the family makes of the others: ffn, kv_heads, the experts' top_k and ffn.
void fill_defaults(ModelShape& shape);

}  // namespace megalith
