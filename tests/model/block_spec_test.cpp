#include "families/block_spec.h"

#include <gtest/gtest.h>

#include <set>

#include "config/presets.h"
#include "families/list.h"

namespace megalith {
namespace {

ModelShape filled(ModelShape shape) {
  fill_defaults(shape);
  if (shape.vocab == 0) shape.vocab = 1009;
  return shape;
}

// Every preset, tied and untied.
std::vector<std::pair<std::string, ModelShape>> all_shapes() {
  std::vector<std::pair<std::string, ModelShape>> shapes;
  for (const Preset& preset : presets())
    for (bool tied : {true, false}) {
      ModelShape shape = filled(preset.shape);
      shape.tied = tied;
      shapes.emplace_back(std::string(preset.name) + (tied ? " tied" : " untied"), shape);
    }
  // Options that no preset has: a head size of its own, and biases on the output projection, too.
  for (int64_t head_size : {2, 6, 16})
    for (bool output_bias : {false, true}) {
      ModelShape shape = default_shape(llama_family);
      shape.layers = 2, shape.hidden = 20, shape.heads = 6, shape.kv_heads = 3, shape.head_size = head_size;
      shape.qkv_bias = true, shape.output_bias = output_bias;
      shapes.emplace_back("heads of " + std::to_string(head_size), filled(shape));
    }
  return shapes;
}

TEST(BlockSpec, NamesAreUnique) {
  for (const auto& [name, shape] : all_shapes()) {
    std::set<std::string> seen;
    for (const BlockSpec& block : list_blocks(shape))
      for (const ParameterSpec& p : block.parameters) EXPECT_TRUE(seen.insert(p.name).second) << name << " " << p.name;
  }
}

TEST(BlockSpec, ParametersLieInOrderAlignedWithoutOverlapAndJoinedOnesTouch) {
  for (const auto& [name, shape] : all_shapes())
    for (const BlockSpec& block : list_blocks(shape)) {
      int64_t end = 0;
      for (const ParameterSpec& p : block.parameters) {
        if (p.joins_previous) {
          EXPECT_EQ(p.offset, end) << name << " " << p.name;
          EXPECT_GT(p.offset, 0) << name << " " << p.name;
        } else {
          EXPECT_GE(p.offset, end) << name << " " << p.name;
          EXPECT_LT(p.offset, end + kFlatAlign) << name << " " << p.name;
          EXPECT_EQ(p.offset % kFlatAlign, 0) << name << " " << p.name;
        }
        end = p.offset + p.size();
      }
      EXPECT_GE(block.flat_size, end);
      EXPECT_LT(block.flat_size, end + kFlatAlign);
      EXPECT_EQ(block.flat_size % kFlatAlign, 0);
    }
}

TEST(BlockSpec, BlocksAreEmbeddingThenLayersThenHead) {
  for (const auto& [name, shape] : all_shapes()) {
    std::vector<BlockSpec> blocks = list_blocks(shape);
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), shape.layers + 2) << name;
    EXPECT_EQ(blocks.front().kind, BlockKind::embedding);
    EXPECT_EQ(blocks.back().kind, BlockKind::head);
    for (int64_t i = 0; i < shape.layers; i++) EXPECT_EQ(blocks[static_cast<size_t>(i) + 1].layer, i);
  }
}

TEST(BlockSpec, MatricesAndTablesDecayNormsAndBiasesDoNot) {
  for (const auto& [name, shape] : all_shapes())
    for (const BlockSpec& block : list_blocks(shape))
      for (const ParameterSpec& p : block.parameters) {
        EXPECT_EQ(p.decays, p.shape.size() == 2) << p.name;
        EXPECT_EQ(p.initial_std > 0, p.shape.size() == 2) << p.name;
        bool norm_weight = p.shape.size() == 1 && p.name.ends_with(".weight");
        EXPECT_EQ(p.initial, norm_weight ? 1 : 0) << p.name;
      }
}

// Names and shapes in Hugging Face's state dicts of small models, written by hand.
TEST(BlockSpec, NamesAndShapesAreHuggingFaces) {
  ModelShape gpt2 = default_shape(gpt2_family);
  gpt2.layers = 1, gpt2.hidden = 8, gpt2.heads = 2, gpt2.vocab = 11, gpt2.context = 6;
  ModelShape llama = default_shape(llama_family);
  llama.layers = 1, llama.hidden = 8, llama.heads = 4, llama.kv_heads = 2, llama.ffn = 12, llama.vocab = 11;
  llama.tied = false;
  ModelShape bert = default_shape(bert_family);
  bert.layers = 1, bert.hidden = 8, bert.heads = 2, bert.vocab = 11, bert.context = 6;
  auto find = [](const ModelShape& shape, const std::string& name) -> std::vector<int64_t> {
    for (const BlockSpec& block : list_blocks(filled(shape)))
      for (const ParameterSpec& p : block.parameters)
        if (p.name == name) return p.shape;
    return {};
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(find(gpt2, "transformer.wte.weight"), Shape({11, 8}));
  EXPECT_EQ(find(gpt2, "transformer.wpe.weight"), Shape({6, 8}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.attn.c_attn.weight"), Shape({8, 24}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.mlp.c_fc.weight"), Shape({8, 32}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.mlp.c_proj.weight"), Shape({32, 8}));
  EXPECT_EQ(find(gpt2, "transformer.ln_f.bias"), Shape({8}));
  EXPECT_EQ(find(gpt2, "lm_head.weight"), Shape({}));  // tied: saved once
  EXPECT_EQ(find(llama, "model.embed_tokens.weight"), Shape({11, 8}));
  EXPECT_EQ(find(llama, "model.layers.0.self_attn.q_proj.weight"), Shape({8, 8}));
  EXPECT_EQ(find(llama, "model.layers.0.self_attn.k_proj.weight"), Shape({4, 8}));
  EXPECT_EQ(find(llama, "model.layers.0.self_attn.v_proj.weight"), Shape({4, 8}));
  EXPECT_EQ(find(llama, "model.layers.0.mlp.up_proj.weight"), Shape({12, 8}));
  EXPECT_EQ(find(llama, "model.layers.0.mlp.down_proj.weight"), Shape({8, 12}));
  EXPECT_EQ(find(llama, "model.norm.weight"), Shape({8}));
  EXPECT_EQ(find(llama, "lm_head.weight"), Shape({11, 8}));
  ModelShape wide = llama;
  wide.head_size = 6, wide.qkv_bias = true;
  EXPECT_EQ(find(wide, "model.layers.0.self_attn.q_proj.weight"), Shape({24, 8}));
  EXPECT_EQ(find(wide, "model.layers.0.self_attn.k_proj.weight"), Shape({12, 8}));
  EXPECT_EQ(find(wide, "model.layers.0.self_attn.o_proj.weight"), Shape({8, 24}));
  EXPECT_EQ(find(wide, "model.layers.0.self_attn.v_proj.bias"), Shape({12}));
  EXPECT_EQ(find(wide, "model.layers.0.self_attn.o_proj.bias"), Shape({}));
  EXPECT_EQ(find(bert, "bert.embeddings.token_type_embeddings.weight"), Shape({2, 8}));
  EXPECT_EQ(find(bert, "bert.encoder.layer.0.attention.self.query.weight"), Shape({8, 8}));
  EXPECT_EQ(find(bert, "bert.encoder.layer.0.intermediate.dense.weight"), Shape({32, 8}));
  EXPECT_EQ(find(bert, "bert.encoder.layer.0.output.LayerNorm.bias"), Shape({8}));
  EXPECT_EQ(find(bert, "cls.predictions.transform.dense.weight"), Shape({8, 8}));
  EXPECT_EQ(find(bert, "cls.predictions.bias"), Shape({11}));
}

}  // namespace
}  // namespace megalith
