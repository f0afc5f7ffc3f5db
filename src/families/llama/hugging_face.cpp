// LlamaForCausalLM, MistralForCausalLM and Qwen2ForCausalLM; with experts, MixtralForCausalLM and Qwen2MoeForCausalLM.
// Keys and defaults are those of transformers' classes (5.22; the older key rope_theta is for 4.x).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "families/hf_fields.h"
#include "families/list.h"
#include "families/llama/mixtral.h"

namespace megalith::llama {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Reads the scaling of rotary positions from rope_scaling (transformers 4) or rope_parameters (5).
RopeScaling read_rope_scaling(const HfFields& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key) || rope.at(key) == "default") return {};
  if (rope.at(key) != "llama3")
    rope.refuse(key, "default or llama3", "other rotary scalings are not supported");
  for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"})
    if (!rope.has(needed)) rope.refuse(needed, "a number, because rope_type is llama3");
  RopeScaling s{rope.number_or("factor", 0, 1, 1e6), rope.number_or("low_freq_factor", 0, 1e-6, 1e6),
                rope.number_or("high_freq_factor", 0, 1e-6, 1e6), rope.count("original_max_position_embeddings")};
  if (s.high <= s.low) rope.refuse("high_freq_factor", fmt::format("more than low_freq_factor ({})", s.low));
  return s;
}

// Reads theta from rope_theta (transformers 4) or rope_parameters (5), in the file or inside the object. Values that
// are given twice must agree.
void read_rope(const HfFields& f, ModelShape& s, double otherwise) {
  constexpr double most = 1e15;
  double theta = f.number_or("rope_theta", otherwise, 1, most);
  bool known = false;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!f.has(key)) continue;
    HfFields rope = f.inside(key);
    RopeScaling scaling = read_rope_scaling(rope);
    if (known && scaling != s.rope_scaling) f.refuse(key, "the same values as rope_scaling");
    s.rope_scaling = scaling;
    known = true;
    rope.must_be("partial_rotary_factor", 1.0, "rotary positions on a part of the head are not supported");
    double inner = rope.number_or("rope_theta", theta, 1, most);
    if (f.has("rope_theta") && inner != theta)
      rope.refuse("rope_theta", fmt::format("the same value as the outer rope_theta ({})", theta));
    theta = inner;
  }
  s.rope_theta = theta;
}

// Keeps the windows of Mistral and Mixtral in the shape; other code checks that sequences are not longer. Qwen2 has
// windows in some layers only, which the shape cannot store. So a Qwen2 window that is shorter than the context is an
// error.
void read_window(const HfFields& f, ModelShape& s, std::string_view type) {
  if (type == "mistral") {
    bool none = f.given("sliding_window") && !f.has("sliding_window");
    s.window = none ? 0 : f.count_or("sliding_window", 4096);
  } else if (type == "mixtral") {
    s.window = f.count_or("sliding_window", 0);
  } else if (f.flag_or("use_sliding_window", type == "llama") && f.has("sliding_window") &&
             f.count("sliding_window") < s.context) {
    f.refuse("sliding_window", fmt::format("null, or at least the context ({})", s.context),
             "sliding-window attention is not supported for this model");
  }
  if (!f.has("layer_types")) return;
  for (const json& each : f.at("layer_types"))
    if (each != "full_attention" && !((type == "mistral" || type == "mixtral") && each == "sliding_attention"))
      f.refuse("layer_types", "full_attention in every layer", "sliding-window attention is not supported for this model");
}

// Reads how a model with experts is trained, from our own key.
void read_training(const HfFields& f, Experts& x) {
  constexpr auto routers = names_of(Router{});
  const auto found = std::find(routers.begin(), routers.end(), f.text("router"));
  if (found == routers.end()) f.refuse("router", join(routers, ", "));
  x.router = static_cast<Router>(found - routers.begin());
  x.normalise = f.flag_or("normalise", true);
  x.capacity = f.number_or("capacity", 0, 0, 1e9);
  x.group = f.has("group") && f.at("group") == 0 ? 0 : f.count_or("group", 0);
  x.across = f.has("across") && f.at("across") == 0 ? 0 : f.count_or("across", 0);
  x.aux_loss = f.number_or("aux_loss", 0, 0, 1e9);
  x.z_loss = f.number_or("z_loss", 0, 0, 1e9);
  x.jitter = f.rate_or("jitter", 0);
  x.bias_rate = f.number_or("bias_rate", 0.001, 0, 1e9);
  x.share_layers = f.flag_or("share_layers", false);
}

void read_experts(const HfFields& f, ModelShape& s, std::string_view type) {
  Experts& x = s.experts;
  const bool mixtral = type == "mixtral";
  x.count = mixtral ? f.count_or("num_local_experts", 8) : f.count_or("num_experts", 60);
  x.top_k = f.count_or("num_experts_per_tok", mixtral ? 2 : 4);
  x.ffn = mixtral ? s.ffn : f.count_or("moe_intermediate_size", 1408);
  x.aux_loss = f.flag_or("output_router_logits", false) ? f.number_or("router_aux_loss_coef", 0.001, 0, 1e9) : 0;
  x.z_loss = 0;
  if (mixtral) {
    if (f.number_or("router_jitter_noise", 0, 0, 1) != 0) f.refuse("router_jitter_noise", "0",
                                                                   "router jitter is not supported for this model");
  } else {
    x.normalise = f.flag_or("norm_topk_prob", false);
    x.every = f.count_or("decoder_sparse_step", 1);
    const bool none = f.has("shared_expert_intermediate_size") && f.at("shared_expert_intermediate_size") == 0;
    x.shared = none ? 0 : f.count_or("shared_expert_intermediate_size", 5632);
    if (f.has("mlp_only_layers"))
      for (const json& layer : f.at("mlp_only_layers"))
        if (layer != x.dense_first++)
          f.refuse("mlp_only_layers", "only the first layers",
                   "dense layers at other places are supported only with decoder_sparse_step");
  }
  if (f.has("megalith_experts")) read_training(f.inside("megalith_experts"), x);
  if (x.top_k > x.count) f.refuse("num_experts_per_tok", fmt::format("at most the number of experts ({})", x.count));
}

// Writes the keys of both versions: transformers 4 reads rope_theta and rope_scaling, 5 reads rope_parameters.
void add_rope(ordered_json& config, const ModelShape& s) {
  ordered_json scaling = {{"rope_type", "llama3"},
                          {"factor", s.rope_scaling.factor},
                          {"low_freq_factor", s.rope_scaling.low},
                          {"high_freq_factor", s.rope_scaling.high},
                          {"original_max_position_embeddings", s.rope_scaling.original_context}};
  bool scaled = s.rope_scaling.factor > 0;
  config["rope_theta"] = s.rope_theta;
  config["rope_scaling"] = scaled ? scaling : ordered_json();
  config["rope_parameters"] = scaled ? scaling : ordered_json{{"rope_type", "default"}};
  config["rope_parameters"]["rope_theta"] = s.rope_theta;
}

// Returns the config of the model type with exactly these biases and heads. Only Qwen2 has biases on q, k, v but not on
// the output. transformers' Llama requires that heads divide hidden_size, even if head_dim is given; Mistral does not.
ordered_json dense_config(const ModelShape& s) {
  bool qwen2 = s.qkv_bias && !s.output_bias;
  bool mistral = !s.qkv_bias && (s.mistral || s.hidden % s.heads != 0);
  ordered_json config = {
      {"architectures", {qwen2 ? "Qwen2ForCausalLM" : mistral ? "MistralForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", qwen2 ? "qwen2" : mistral ? "mistral" : "llama"},
      {"vocab_size", s.vocab},
      {"hidden_size", s.hidden},
      {"intermediate_size", s.ffn},
      {"num_hidden_layers", s.layers},
      {"num_attention_heads", s.heads},
      {"num_key_value_heads", s.kv_heads},
      {"head_dim", s.head_dim()},
      {"hidden_act", "silu"},
      {"max_position_embeddings", s.context},
      {"rms_norm_eps", s.norm_eps},
      {"attention_dropout", s.dropout.attention}};
  add_rope(config, s);
  if (mistral) config["sliding_window"] = s.window > 0 ? ordered_json(s.window) : ordered_json();
  if (qwen2) config["use_sliding_window"] = false;
  if (qwen2 && s.head_size == 0) config.erase("head_dim");  // Hugging Face's Qwen2 folders do not have this key
  if (!qwen2 && !mistral) config["attention_bias"] = s.qkv_bias;
  if (!qwen2 && !mistral) config["mlp_bias"] = false;
  return config;
}

// Adds experts to the config. Uses a model type of Hugging Face if one of its classes computes the same; otherwise a
// type that transformers rejects.
void add_experts(ordered_json& config, const ModelShape& s) {
  const Experts& x = s.experts;
  const bool ours = x.router == Router::sigmoid || x.router == Router::expert_choice || x.share_layers,
             mixtral = !ours && is_mixtral(s);
  config["architectures"] = ordered_json::array(
      {ours ? "MegalithForCausalLM" : mixtral ? "MixtralForCausalLM" : "Qwen2MoeForCausalLM"});
  config["model_type"] = ours ? "megalith_experts" : mixtral ? "mixtral" : "qwen2_moe";
  for (const char* key : {"attention_bias", "mlp_bias", "sliding_window", "use_sliding_window"}) config.erase(key);
  config["num_experts_per_tok"] = x.top_k;
  config["output_router_logits"] = x.has_losses() && x.aux_loss > 0;
  config["router_aux_loss_coef"] = x.has_losses() ? x.aux_loss : 0;
  if (mixtral) {
    config["num_local_experts"] = x.count;
    config["sliding_window"] = s.window > 0 ? ordered_json(s.window) : ordered_json();
  } else {
    ordered_json dense = ordered_json::array();
    for (int64_t i = 0; i < x.dense_first; i++) dense.push_back(i);
    config["num_experts"] = x.count;
    config["moe_intermediate_size"] = x.ffn;
    config["shared_expert_intermediate_size"] = x.shared;
    config["norm_topk_prob"] = x.router != Router::switch_ && x.normalise;
    config["decoder_sparse_step"] = x.every;
    config["mlp_only_layers"] = dense;
    config["qkv_bias"] = s.qkv_bias;
    config["use_sliding_window"] = false;
  }
  if (s.head_size == 0) config.erase("head_dim");  // like Hugging Face's own folders
  // Training settings, for which Hugging Face has no keys.
  config["megalith_experts"] = {{"router", name_of(x.router)}, {"normalise", x.normalise}, {"capacity", x.capacity},
                                {"group", x.group},            {"across", x.across},       {"aux_loss", x.aux_loss},
                                {"z_loss", x.z_loss},          {"jitter", x.jitter},       {"bias_rate", x.bias_rate},
                                {"share_layers", x.share_layers}};
}

}  // namespace

HfNames hf_names() {
  static constexpr std::array<std::string_view, 5> model_types{"llama", "mistral", "qwen2", "mixtral", "qwen2_moe"};
  static constexpr std::array<std::string_view, 1> own_model_types{"megalith_experts"};
  static constexpr std::array<HfNames::Pair, 1> tied{{{"model.embed_tokens.weight", "lm_head.weight"}}};
  static constexpr std::array<std::string_view, 1> buffers{"rotary_emb.inv_freq"};
  return {.model_types = model_types,
          .own_model_types = own_model_types,
          .heads_key = "num_attention_heads",
          .prefix = "model.",
          .tied = tied,
          .buffers = buffers};
}

// A missing key gets the default of the model's class in transformers.
void read_config(const HfFields& f, ModelShape& s) {
  const std::string type = f.text("model_type");
  const bool mistral = type == "mistral", mixtral = type == "mixtral";
  const bool sparse = mixtral || type == "qwen2_moe" || type == "megalith_experts";
  const bool qwen2 = type == "qwen2" || (sparse && !mixtral);
  s.vocab = f.count("vocab_size");
  s.context = f.count_or("max_position_embeddings", mistral || mixtral ? 131072 : qwen2 ? 32768 : 2048);
  s.hidden = f.count("hidden_size");
  s.layers = f.count("num_hidden_layers");
  s.heads = f.count("num_attention_heads");
  bool groups_given = f.given("num_key_value_heads");
  s.kv_heads = f.count_or("num_key_value_heads", groups_given         ? s.heads
                                                 : mistral || mixtral ? 8
                                                 : type == "qwen2"    ? 32
                                                 : sparse             ? 16
                                                                      : s.heads);
  s.ffn = f.count("intermediate_size");
  s.norm_eps = f.number_or("rms_norm_eps", mixtral ? 1e-5 : 1e-6, kSmallestEps, 1);
  s.tied = f.flag_or("tie_word_embeddings", false);
  s.dropout.attention = f.rate_or("attention_dropout", 0);
  s.mistral = mistral;
  if (type == "llama") s.output_bias = f.flag_or("attention_bias", false);
  s.qkv_bias = type == "qwen2" || s.output_bias || (qwen2 && f.flag_or("qkv_bias", true));
  if (sparse) read_experts(f, s, type);
  read_rope(f, s, mixtral ? 1e6 : 10000);
  read_window(f, s, type);
  f.must_be_one_of("hidden_act", {"silu", "swish"});
  f.must_be("mlp_bias", false, "biases in the feed-forward layer are not supported");
  f.must_be("partial_rotary_factor", 1.0, "rotary positions on a part of the head are not supported");
  int64_t head_dim = f.count_or("head_dim", s.hidden / s.heads);
  if (f.has("head_dim") && head_dim * s.heads != s.hidden) s.head_size = head_dim;
  if (head_dim % 2 != 0) f.refuse(f.has("head_dim") ? "head_dim" : "num_attention_heads",
                                  "a value for which the width of a head is even");
  if (s.heads % s.kv_heads != 0)
    f.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads ({})", s.heads));
}

void write_config(const ModelShape& s, ordered_json& config) {
  config = dense_config(s);
  if (s.experts.any()) add_experts(config, s);
  write_dropout(s, config);
}

}  // namespace megalith::llama
