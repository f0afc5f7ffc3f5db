// A family that exists only here. It shows what a new family needs, and that the rest of the program needs no change.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/hf_config.h"
#include "checkpoint/weight_names.h"
#include "config/errors.h"
#include "config/options.h"
#include "config/resolved.h"
#include "engine/support.h"
#include "families/blocks.h"
#include "families/hf_fields.h"
#include "families/parameter_list.h"
#include "families/registry.h"
#include "model/decoder_head.h"
#include "model/decoder_layer.h"
#include "model/layer_facts.h"
#include "model/layers/feed_forward.h"
#include "model/layers/table.h"
#include "model/layers/table_facts.h"
#include "model/layers/vocabulary_loss_facts.h"

namespace megalith {

// shape.cpp
namespace toy {
extern const Family family;
namespace {

ModelShape defaults() {
  ModelShape shape;
  shape.context = 64;
  return shape;
}

void fill(ModelShape& shape) { shape.ffn = 2 * shape.hidden; }

std::span<const Preset> presets() {
  static const std::vector<Preset> table = [] {
    ModelShape shape = default_shape(family);
    shape.layers = 2, shape.hidden = 32, shape.heads = 4, shape.vocab = 61;
    return std::vector<Preset>{{"toy-20k", "a test", shape}};
  }();
  return table;
}

// parameters.cpp: no positions, one norm and no bias anywhere.
std::vector<BlockSpec> parameters(const ModelShape& s, const Mesh& mesh) {
  const Cutter own(mesh);
  const int64_t C = s.hidden, F = s.ffn;
  std::vector<BlockSpec> blocks{embedding_block({own.rows(matrix("toy.tokens.weight", {s.vocab, C}))})};
  for (int64_t i = 0; i < s.layers; i++) {
    const std::string p = fmt::format("toy.layers.{}.", i);
    blocks.push_back(layer_block(
        i, {ones(p + "norm1.weight", C), own.rows(matrix(p + "qkv.weight", {3 * C, C}), 3),
            own.columns(matrix(p + "out.weight", {C, C})), ones(p + "norm2.weight", C),
            own.rows(matrix(p + "up.weight", {F, C})), own.columns(matrix(p + "down.weight", {C, F}))}));
  }
  blocks.push_back(head_block({ones("toy.norm.weight", C)}));
  if (!s.tied) blocks.back().parameters.push_back(own.rows(matrix("lm_head.weight", {s.vocab, C})));
  return blocks;
}

// hugging_face.cpp
HfNames hf_names() {
  static constexpr std::array<std::string_view, 1> model_types{"toy"};
  static constexpr std::array<HfNames::Pair, 1> tied{{{"toy.tokens.weight", "lm_head.weight"}}};
  return {.model_types = model_types, .heads_key = "heads", .prefix = "toy.", .tied = tied};
}

void read_config(const HfFields& f, ModelShape& s) {
  s.vocab = f.count("vocab_size");
  s.context = f.count("context");
  s.hidden = f.count("hidden_size");
  s.layers = f.count("layers");
  s.heads = s.kv_heads = f.count("heads");
  s.ffn = f.count_or("ffn", 2 * s.hidden);
  s.tied = f.flag_or("tie_word_embeddings", true);
}

void write_config(const ModelShape& s, nlohmann::ordered_json& config) {
  config = {{"model_type", "toy"}, {"vocab_size", s.vocab}, {"context", s.context}, {"hidden_size", s.hidden},
            {"layers", s.layers},  {"heads", s.heads},      {"ffn", s.ffn}};
  write_dropout(s, config);
}

// facts.cpp
BlockCosts facts(const BlockSpec& block, const RankSizes& sizes) {
  switch (block.kind) {
    case BlockKind::embedding: return embedding_facts(sizes, {});
    case BlockKind::layer: return layer_facts(sizes, {.half = gelu_facts(sizes)});
    case BlockKind::head: break;
  }
  return head_facts(sizes);
}

// blocks.cpp
class Embedding : public EmbeddingBlock {
 public:
  using EmbeddingBlock::EmbeddingBlock;
  at::Tensor forward(const at::Tensor&, const Pass& pass, Tape*) override { return tokens_.forward(pass); }
  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape&) override {
    tokens_.backward(g_NC, pass);
    return {};
  }
  Weight table() const override { return tokens_.weight; }
  void fold() override { tokens_.fold(); }

 private:
  void bind_weights() override { tokens_.weight = weight("tokens.weight"); }
  TokenTable tokens_{shape_, exchanges_};
};

class Layer : public DecoderLayer<RmsNorm, GeluFeedForward> {
 public:
  using DecoderLayer::DecoderLayer;

 private:
  void bind_weights() override {
    norm1_ = {weight("norm1.weight"), shape_.norm_eps};
    norm2_ = {weight("norm2.weight"), shape_.norm_eps};
    attention_.bind({weight("qkv.weight"), {}}, {weight("out.weight"), {}});
    feed_forward_ = {{weight("up.weight"), {}}, {{weight("down.weight"), {}}, sequence_parallel_}, kernels::GeluForm::tanh};
  }
};

class Head : public DecoderHead<RmsNorm> {
 public:
  using DecoderHead::DecoderHead;

 private:
  void bind_norm() override { norm_ = {weight("toy.norm.weight"), shape_.norm_eps}; }
};

std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges) {
  switch (spec.kind) {
    case BlockKind::embedding: return std::make_unique<Embedding>(shape, std::move(spec), exchanges);
    case BlockKind::layer: return std::make_unique<Layer>(shape, std::move(spec), exchanges);
    case BlockKind::head: break;
  }
  return std::make_unique<Head>(shape, std::move(spec), exchanges);
}

}  // namespace

constinit const Family family{.name = "toy",
                              .defaults = defaults,
                              .fill = fill,
                              .presets = presets,
                              .parameters = parameters,
                              .facts = facts,
                              .hf_names = hf_names,
                              .read_config = read_config,
                              .write_config = write_config};
}  // namespace toy

namespace {
using namespace testing_support;

constexpr const char* kYaml =
    "model: {arch: toy, layers: 2, hidden: 32, heads: 4, vocab: 61}\n"
    "data: {train: [a.txt], sequence: 16}\n";

class ToyFamily : public testing::Test {
 protected:
  ExtraFamily family_{toy::family};
  ExtraBlocks blocks_{toy::family, toy::make_block};
  Config config_ = parse(kYaml);
  const ModelShape& shape_ = config_.model.shape;
};

TEST_F(ToyFamily, IsReadFromYamlAndWrittenBack) {
  EXPECT_EQ(shape_.family, &toy::family);
  EXPECT_EQ(shape_.ffn, 64);
  EXPECT_EQ(shape_.kv_heads, 4);
  EXPECT_EQ(shape_.context, 64);
  EXPECT_EQ(parse(to_yaml(config_)), config_);
  EXPECT_EQ(find_preset("toy-20k").shape.family, &toy::family);
  EXPECT_EQ(find_option("model.arch")->expected(), "gpt2, llama, bert or toy");
}

TEST_F(ToyFamily, RefusesWhatOnlyOtherFamiliesHave) {
  EXPECT_NE(mistake(kYaml + std::string("objective: masked")).find(
            "causal, prefix, spans or contrastive, because model.arch is toy, got masked"),
            std::string::npos);
  EXPECT_NE(mistake(kYaml, {"model.rope_theta=5"}).find("expected model.arch llama, got model.arch toy"),
            std::string::npos);
}

TEST_F(ToyFamily, ListsItsParametersForEveryRank) {
  EXPECT_EQ(parameter_count(shape_), 61 * 32 + 2 * (2 * 32 + 4 * 32 * 32 + 2 * 32 * 64) + 32);
  int64_t cut = 0, whole = 0;
  for (int rank = 0; rank < 2; rank++)
    for (const BlockSpec& block : list_blocks(shape_, Mesh({.tensor = 2}, rank)))
      for (const ParameterSpec& p : block.parameters) (p.is_cut() ? cut : whole) += p.size();
  EXPECT_EQ(cut + whole / 2, parameter_count(shape_));
}

TEST_F(ToyFamily, IsWrittenAndReadAsHuggingFacesConfig) {
  ModelShape shape = shape_;
  shape.dropout = {0.1, 0.2, 0};
  EXPECT_EQ(parse_hf_config(hf_config(shape), "config.json"), shape);
  EXPECT_EQ(other_spellings("toy.norm.weight"), (std::vector<std::string>{"toy.norm.weight", "norm.weight"}));
  EXPECT_EQ(tied_to("toy.tokens.weight"), "lm_head.weight");
}

TEST_F(ToyFamily, HasFactsOfEveryBlock) {
  const auto facts = block_facts(shape_, {.sequences = 2, .length = 16}, Precision::fp32);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_EQ(facts[1].forward.flop, 2.0 * 32 * (4 * 32 * 32 + 2 * 32 * 64) + 4.0 * 32 * 16 * 32 * 0.5);
  EXPECT_EQ(facts[1].parameters, 2 * 32 + 4 * 32 * 32 + 2 * 32 * 64);
  EXPECT_EQ(facts[3].tied_to, 0);
}

TEST_F(ToyFamily, LearnsABatchByHeart) {
  const Batch batch = random_batch(shape_, 2, 12);
  auto engine = make_engine(shape_);
  const std::vector<double> losses = memorise(*engine, batch, step_of(shape_, batch, 1), 60, 1e-2);
  EXPECT_LT(losses.back(), 0.6 * losses.front());
}

TEST(FamilyRegistry, HasAnExtraFamilyOnlyWhileItIsRegistered) {
  {
    ExtraFamily family(toy::family);
    EXPECT_EQ(find_family("toy"), &toy::family);
  }
  EXPECT_EQ(find_family("toy"), nullptr);
}

}  // namespace
}  // namespace megalith
