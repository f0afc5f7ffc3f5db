#include "config/presets.h"

#include <gtest/gtest.h>

#include <map>

#include "config/errors.h"
#include "families/list.h"

namespace megalith {
namespace {

ModelShape odd(const Family* family, int64_t hidden, int64_t heads, int64_t kv_heads, bool tied) {
  ModelShape shape = default_shape(*family);
  shape.layers = 3;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.ffn = 131;
  shape.vocab = 1009;
  shape.context = 37;
  shape.tied = tied;
  if (family == &bert_family) shape.token_types = 3;
  return shape;
}

}  // namespace

// Counted by transformers 5.22 as the sum of numel() over parameters(), with the same sizes in the configuration.
// Classes: GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and BertForMaskedLM.
TEST(Presets, ParametersAreCountedAsHuggingFaceDoes) {
  const std::map<std::string_view, int64_t> counted{
      {"gpt2-124m", 124439808},  {"gpt2-355m", 354823168},  {"gpt2-774m", 774030080},
      {"gpt2-1.5b", 1557611200}, {"gpt3-1.3b", 1315723264}, {"llama-10m", 10424448},
      {"llama-110m", 109529856}, {"llama-1b", 1100048384},  {"llama-7b", 6738415616},
      {"qwen2-0.5b", 494032768}, {"bert-base", 109514298},  {"bert-large", 335174458}};
  EXPECT_EQ(presets().size(), counted.size());
  for (const Preset& preset : presets()) {
    ModelShape shape = preset.shape;
    fill_defaults(shape);
    EXPECT_EQ(parameter_count(shape), counted.at(preset.name)) << preset.name;
    EXPECT_NE(list_presets().find(fmt::format("{}", counted.at(preset.name))), std::string::npos)
        << preset.name;
  }
}

TEST(Presets, OddShapesAreCountedAsHuggingFaceDoes) {
  EXPECT_EQ(parameter_count(odd(&gpt2_family, 65, 5, 5, true)), 172058);
  EXPECT_EQ(parameter_count(odd(&gpt2_family, 65, 5, 5, false)), 237643);
  EXPECT_EQ(parameter_count(odd(&llama_family, 60, 6, 2, true)), 160500);
  EXPECT_EQ(parameter_count(odd(&llama_family, 60, 6, 2, false)), 221040);
  EXPECT_EQ(parameter_count(odd(&bert_family, 65, 5, 5, true)), 177682);
  ModelShape mistral = odd(&llama_family, 60, 7, 7, true), biased = odd(&llama_family, 60, 6, 2, true);
  mistral.head_size = 10;
  biased.head_size = 14, biased.qkv_bias = biased.output_bias = true;
  EXPECT_EQ(parameter_count(mistral), 182100);
  EXPECT_EQ(parameter_count(biased), 172620);
}

TEST(Presets, EachOneIsAValidModel) {
  for (const Preset& preset : presets()) {
    std::string objective = preset.shape.family == &bert_family ? "objective: masked\n" : "";
    Config config = parse(fmt::format("model: {{preset: {}}}\n{}", preset.name, objective));
    EXPECT_EQ(config.model.preset, preset.name);
    EXPECT_EQ(config.model.shape.layers, preset.shape.layers);
    EXPECT_GT(config.model.shape.ffn, 0);
  }
}

TEST(Presets, FieldsOverrideAPresetAndDefaultsFollow) {
  Config config = parse("model: {preset: gpt2-124m, layers: 2, hidden: 128, heads: 4, vocab: 1000}");
  EXPECT_EQ(config.model.shape.layers, 2);
  EXPECT_EQ(config.model.shape.ffn, 512);
  EXPECT_EQ(config.model.shape.kv_heads, 4);
  EXPECT_EQ(config.model.shape.vocab, 1000);
  EXPECT_EQ(config.model.shape.context, 1024);
  EXPECT_EQ(parse("model: {preset: llama-7b, hidden: 2048}").model.shape.ffn, 11008);  // the value of the preset
}

TEST(Presets, UnknownOnesNameTheNearest) {
  EXPECT_EQ(mistake("model:\n  preset: gpt2-124\n"),
            "run.yaml:2: model.preset: expected a known model, got gpt2-124; did you mean gpt2-124m? "
            "`megalith presets` lists all models");
  EXPECT_NE(mistake("model: {preset: mystery}").find("`megalith presets` lists all models"), std::string::npos);
}

TEST(Presets, NamesOfHuggingFaceAreToldHowToDownload) {
  EXPECT_EQ(mistake("model: gpt2"),
            "run.yaml:1: model.preset: expected a known model, got gpt2; did you mean gpt2-124m? Megalith downloads nothing: "
            "if gpt2 is a model of Hugging Face, run `hf download gpt2 --local-dir gpt2`, then write model: {from: gpt2}");
  EXPECT_NE(mistake("model: Qwen/Qwen2-0.5B").find("`hf download Qwen/Qwen2-0.5B --local-dir Qwen/Qwen2-0.5B`"),
            std::string::npos);
  EXPECT_EQ(parse("model: gpt2-124m").model, parse("model: {preset: gpt2-124m}").model);
}

TEST(Presets, ArchitecturesHaveTheirDefaults) {
  Config llama = parse("model: {arch: llama, layers: 1, hidden: 100, heads: 5}");
  EXPECT_EQ(llama.model.shape.ffn, 320);  // 266.7 rounded up to a multiple of 64
  EXPECT_EQ(llama.model.shape.kv_heads, 5);
  EXPECT_FALSE(llama.model.shape.tied);
  EXPECT_EQ(llama.model.shape.rope_theta, 10000);
  EXPECT_EQ(llama.model.shape.vocab, 0);  // 0: follows from the tokenizer
  Config gpt2 = parse("model: {arch: gpt2, layers: 1, hidden: 100, heads: 5}");
  EXPECT_EQ(gpt2.model.shape.ffn, 400);
  EXPECT_TRUE(gpt2.model.shape.tied);
  EXPECT_EQ(gpt2.model.shape.context, 1024);
  EXPECT_EQ(gpt2.model.shape.norm_eps, 1e-5);
  Config bert = parse("model: {arch: bert, layers: 1, hidden: 100, heads: 5}\nobjective: masked");
  EXPECT_EQ(bert.model.shape.ffn, 400);
  EXPECT_EQ(bert.model.shape.token_types, 2);
  EXPECT_EQ(bert.model.shape.norm_eps, 1e-12);
  EXPECT_EQ(bert.model.shape.context, 512);
}

}  // namespace megalith
