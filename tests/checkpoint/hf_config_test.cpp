#include "checkpoint/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/support.h"
#include "families/family.h"
#include "families/list.h"

namespace megalith {
namespace {

using nlohmann::json;
using test::user_error;

ModelShape shape_of(const Family* family) {
  ModelShape s;
  s.family = family;
  s.layers = 3;
  s.hidden = 40;
  s.heads = s.kv_heads = 10;
  s.ffn = 72;
  s.vocab = 1009;
  s.context = 37;
  s.norm_eps = 3e-6;
  s.dropout = {0.25, 0.25, 0.125};
  if (family == &llama_family) s.kv_heads = 2, s.rope_theta = 500000, s.dropout = {0, 0, 0.125};
  if (family == &bert_family) s.token_types = 2;
  return s;
}

TEST(HfConfig, WhatIsWrittenReadsBackAsTheSameShape) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family})
    for (bool tied : {true, false}) {
      ModelShape s = shape_of(family);
      s.tied = tied;
      EXPECT_EQ(parse_hf_config(hf_config(s), "config.json"), s);
      s.dropout = {0.5, 0.25, 0};  // Llama's and BERT's own keys cannot express this
      EXPECT_EQ(parse_hf_config(hf_config(s), "config.json"), s);
    }
}

TEST(HfConfig, ExpertsReadBackAsTheyWere) {
  for (Router router :
       {Router::softmax, Router::noisy, Router::switch_, Router::gshard, Router::expert_choice, Router::sigmoid})
    for (int64_t shared : {0, 24})
      for (bool biased : {false, true}) {
        ModelShape s = shape_of(&llama_family);
        s.qkv_bias = biased;
        s.experts = {.count = 6,
                     .top_k = 1,
                     .router = router,
                     .ffn = shared > 0 ? 20 : s.ffn,
                     .shared = shared,
                     .capacity = 1.5,
                     .group = 7,
                     .aux_loss = 0.25,
                     .z_loss = 0.125,
                     .jitter = 0.1,
                     .bias_rate = 0.5};
        if (shared > 0) s.experts.every = 2, s.experts.dense_first = 1, s.experts.normalise = false;
        EXPECT_EQ(parse_hf_config(hf_config(s), "config.json"), s) << static_cast<int>(router) << " " << shared;
        const json text = parse_json(hf_config(s));
        const bool ours = router == Router::expert_choice || router == Router::sigmoid;
        EXPECT_EQ(text.at("model_type"), ours                                                         ? "megalith_experts"
                                         : shared == 0 && !biased && router != Router::switch_ ? "mixtral"
                                                                                                      : "qwen2_moe");
      }
}

TEST(HfConfig, TheirExpertsMeanWhatTheirClassesCompute) {
  const std::string sizes =
      R"("vocab_size":100,"hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,)"
      R"("num_key_value_heads":4,)";
  ModelShape mixtral = parse_hf_config(R"({"model_type":"mixtral",)" + sizes + R"("num_local_experts":4})", "c");
  EXPECT_EQ(mixtral.experts.count, 4);
  EXPECT_EQ(mixtral.experts.top_k, 2);
  EXPECT_EQ(mixtral.experts.ffn, 96);
  EXPECT_EQ(mixtral.experts.aux_loss, 0);  // transformers adds it only with output_router_logits
  EXPECT_EQ(mixtral.rope_theta, 1e6);
  EXPECT_FALSE(mixtral.qkv_bias);
  ModelShape qwen = parse_hf_config(R"({"model_type":"qwen2_moe",)" + sizes +
                                        R"("num_experts":6,"output_router_logits":true,"mlp_only_layers":[0,1]})", "c");
  EXPECT_EQ(qwen.experts.top_k, 4);
  EXPECT_EQ(qwen.experts.ffn, 1408);
  EXPECT_EQ(qwen.experts.shared, 5632);
  EXPECT_FALSE(qwen.experts.normalise);
  EXPECT_EQ(qwen.experts.aux_loss, 0.001);
  EXPECT_EQ(qwen.experts.dense_first, 2);
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_NE(user_error([&] {
              parse_hf_config(R"({"model_type":"qwen2_moe",)" + sizes + R"("num_experts":6,"mlp_only_layers":[1]})", "c");
            }).find("mlp_only_layers"), std::string::npos);
  EXPECT_NE(user_error([&] {
              parse_hf_config(R"({"model_type":"mixtral",)" + sizes + R"("num_local_experts":1})", "c");
            }).find("num_experts_per_tok"), std::string::npos);
}

TEST(HfConfig, UnknownIdsAreNullInsteadOfAnotherVocabularysDefaults) {
  json none = parse_json(hf_config(shape_of(&llama_family)));
  EXPECT_TRUE(none.at("bos_token_id").is_null() && none.at("eos_token_id").is_null());
  json some = parse_json(hf_config(shape_of(&llama_family), {.begin = 5, .end = 6}, DType::bf16));
  EXPECT_EQ(some.at("bos_token_id"), 5);
  EXPECT_EQ(some.at("eos_token_id"), 6);
  EXPECT_EQ(some.at("dtype"), "bfloat16");
}

TEST(HfConfig, MinimalOldFilesMeanTheirClassesDefaults) {
  ModelShape gpt2 = parse_hf_config(
      R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12})",
      "c");
  EXPECT_EQ(gpt2.ffn, 3072);
  EXPECT_EQ(gpt2.norm_eps, 1e-5);
  EXPECT_TRUE(gpt2.tied);
  EXPECT_EQ(gpt2.dropout.residual, 0.1);
  ModelShape llama = parse_hf_config(
      R"({"model_type":"llama","vocab_size":32000,"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
          "intermediate_size":100,"rope_scaling":null})",
      "c");
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_EQ(llama.rope_theta, 10000);
  EXPECT_FALSE(llama.tied);
}

TEST(HfConfig, RopeThetaIsReadInOldAndNewSpelling) {
  json c = parse_json(hf_config(shape_of(&llama_family)));
  json old_style = c, new_style = c, torn = c;
  old_style.erase("rope_parameters");
  new_style.erase("rope_theta");
  torn["rope_theta"] = 10000;
  EXPECT_EQ(parse_hf_config(print_json(old_style), "c").rope_theta, 500000);
  EXPECT_EQ(parse_hf_config(print_json(new_style), "c").rope_theta, 500000);
  EXPECT_CONTAINS(user_error([&] { parse_hf_config(print_json(torn), "c"); }), "rope_parameters.rope_theta");
}

// Models similar to Llama, each as its class in transformers defines it.
TEST(HfConfig, BiasesHeadWidthsAndScaledPositionsComeBack) {
  ModelShape qwen2 = shape_of(&llama_family);
  qwen2.qkv_bias = true;
  EXPECT_EQ(parse_json(hf_config(qwen2)).at("model_type"), "qwen2");
  ModelShape mistral = shape_of(&llama_family);
  mistral.mistral = true;
  EXPECT_EQ(parse_json(hf_config(mistral)).at("architectures").at(0), "MistralForCausalLM");
  ModelShape windowed = mistral;
  windowed.window = 16;
  ModelShape biased = shape_of(&llama_family);
  biased.qkv_bias = biased.output_bias = true;
  EXPECT_EQ(parse_json(hf_config(biased)).at("model_type"), "llama");
  ModelShape wide = shape_of(&llama_family);
  wide.head_size = 16;
  ModelShape narrow = shape_of(&llama_family);
  narrow.hidden = 42, narrow.head_size = 4;  // 42 is not a multiple of 10 heads, so transformers' Llama refuses it
  EXPECT_EQ(parse_json(hf_config(narrow)).at("model_type"), "mistral");
  narrow.mistral = true;
  ModelShape stretched = shape_of(&llama_family);
  stretched.rope_scaling = {8, 1, 4, 16};
  for (const ModelShape& s : {qwen2, mistral, windowed, biased, wide, narrow, stretched})
    EXPECT_EQ(parse_hf_config(hf_config(s), "config.json"), s);
}

TEST(HfConfig, AScaledRopeIsReadInOldAndNewSpelling) {
  ModelShape s = shape_of(&llama_family);
  s.rope_scaling = {8, 1, 4, 16};
  json old_style = parse_json(hf_config(s)), new_style = old_style, torn = old_style, oldest = old_style;
  old_style.erase("rope_parameters");
  new_style.erase("rope_scaling");
  new_style.erase("rope_theta");
  oldest.erase("rope_parameters");
  oldest["rope_scaling"].erase("rope_type");
  oldest["rope_scaling"]["type"] = "llama3";
  torn["rope_scaling"]["factor"] = 4;
  for (const json& config : {old_style, new_style, oldest}) EXPECT_EQ(parse_hf_config(print_json(config), "c"), s);
  EXPECT_CONTAINS(user_error([&] { parse_hf_config(print_json(torn), "c"); }), "rope_parameters");
  json upside_down = new_style;
  upside_down["rope_parameters"]["high_freq_factor"] = 0.5;
  EXPECT_CONTAINS(user_error([&] { parse_hf_config(print_json(upside_down), "c"); }), "high_freq_factor");
}

TEST(HfConfig, AMistralFileThatSaysNothingOfItsWindowHasTheClassesDefault) {
  ModelShape s = shape_of(&llama_family);
  s.mistral = true;
  json config = parse_json(hf_config(s));
  EXPECT_EQ(parse_hf_config(print_json(config), "c").window, 0);  // null: no window
  config.erase("sliding_window");
  EXPECT_EQ(parse_hf_config(print_json(config), "c").window, 4096);
  EXPECT_EQ(parse_hf_config(print_json(config), "c").longest_sequence(), 37);
}

TEST(HfConfig, AQwen2WindowIsRefusedOnlyWhereItIsUsed) {
  ModelShape s = shape_of(&llama_family);
  s.qkv_bias = true;
  json config = parse_json(hf_config(s));
  config["sliding_window"] = 16;
  EXPECT_EQ(parse_hf_config(print_json(config), "c"), s);
  config["use_sliding_window"] = true;
  EXPECT_CONTAINS(user_error([&] { parse_hf_config(print_json(config), "c"); }), "sliding_window");
}

struct Variation {
  const Family* family;
  const char* key;
  json value;
};

TEST(HfConfig, OtherModelsAreRefusedByTheKeyThatMakesThemOther) {
  const std::vector<Variation> variations{
      {&gpt2_family, "model_type", "gpt_neo"},
      {&gpt2_family, "activation_function", "relu"},
      {&gpt2_family, "scale_attn_weights", false},
      {&gpt2_family, "scale_attn_by_inverse_layer_idx", true},
      {&gpt2_family, "add_cross_attention", true},
      {&gpt2_family, "n_head", 7},
      {&gpt2_family, "n_layer", 0},
      {&gpt2_family, "n_embd", "768"},
      {&gpt2_family, "vocab_size", 1e30},
      {&gpt2_family, "vocab_size", 9223372036854775808u},
      {&gpt2_family, "n_positions", nullptr},
      {&gpt2_family, "resid_pdrop", 1},
      {&gpt2_family, "layer_norm_epsilon", -1e-5},
      {&gpt2_family, "tie_word_embeddings", "yes"},
      {&llama_family, "hidden_act", "gelu"},
      {&llama_family, "attention_bias", 1},
      {&llama_family, "mlp_bias", true},
      {&llama_family, "head_dim", 7},
      {&llama_family, "num_key_value_heads", 3},
      {&llama_family, "sliding_window", 36},
      {&llama_family, "layer_types", {"full_attention", "sliding_attention", "full_attention"}},
      {&llama_family, "partial_rotary_factor", 0.5},
      {&llama_family, "rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
      {&llama_family, "rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 500000.0}}},
      {&llama_family, "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 500000.0}}},
      {&llama_family, "quantization_config", {{"bits", 4}}},
      {&bert_family, "hidden_act", "gelu_new"},
      {&bert_family, "position_embedding_type", "relative_key"},
      {&bert_family, "is_decoder", true},
  };
  for (const Variation& v : variations) {
    json config = parse_json(hf_config(shape_of(v.family)));
    config[v.key] = v.value;
    std::string message = user_error([&] { parse_hf_config(print_json(config), "dir/config.json"); });
    EXPECT_CONTAINS(message, std::string("dir/config.json: ") + v.key);
    EXPECT_CONTAINS(message, "expected ");
  }
  EXPECT_CONTAINS(user_error([] { parse_hf_config("[1]", "c"); }), "a JSON object");
  EXPECT_CONTAINS(user_error([] { parse_hf_config("{", "c"); }), "a JSON object");
}

}  // namespace
}  // namespace megalith
