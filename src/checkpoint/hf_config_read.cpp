// Reading config.json: what is not exactly one of our models is refused by the key that says so.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "config/names.h"
#include "checkpoint/hf_config.h"

namespace megalith {
namespace {

using nlohmann::json;

// Typed look-ups in one object. A null means what leaving out means, as in Hugging Face.
class Fields {
 public:
  Fields(const json& object, std::string where, std::string path = "")
      : object_(object), where_(std::move(where)), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected,
                           const std::string& hint = "") const {
    std::string got = has(key) ? at(key).dump(-1, ' ', true, json::error_handler_t::replace) : "nothing";
    if (got.size() > 100) got = got.substr(0, 100) + "...";
    throw UserError({where_, path_ + key, expected, got, hint});
  }

  bool has(const std::string& key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  bool given(const std::string& key) const { return object_.contains(key); }  // perhaps as null
  const json& at(const std::string& key) const { return object_.at(key); }

  Fields inside(const std::string& key) const {
    if (!at(key).is_object()) refuse(key, "an object");
    return Fields(at(key), where_, path_ + key + ".");
  }

  int64_t count(const std::string& key) const {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (!has(key) || !at(key).is_number_integer() || at(key) < 1 || at(key) > most)
      refuse(key, fmt::format("a whole number from 1 to {}", most));
    return at(key).get<int64_t>();
  }
  int64_t count_or(const std::string& key, int64_t otherwise) const {
    return has(key) ? count(key) : otherwise;
  }

  double number_or(const std::string& key, double otherwise, double low, double high) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_number() || !(at(key).get<double>() >= low && at(key).get<double>() <= high))
      refuse(key, fmt::format("a number from {} to {}", low, high));
    return at(key).get<double>();
  }
  double rate_or(const std::string& key, double otherwise) const {
    double rate = number_or(key, otherwise, 0, 1);
    if (rate == 1) refuse(key, "a rate from 0 to less than 1");
    return rate;
  }
  bool flag_or(const std::string& key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }

  // The key may be left out where the default is ours too.
  void must_be(const std::string& key, const json& only, const std::string& why) const {
    if (has(key) && at(key) != only) refuse(key, only.dump(), why);
  }
  void must_be_one_of(const std::string& key, std::initializer_list<const char*> names) const {
    if (!has(key)) return;
    for (const char* name : names)
      if (at(key) == name) return;
    refuse(key, fmt::format("{}", fmt::join(names, " or ")), "other activations are not built in");
  }
  void must_be_absent(const std::string& key, const std::string& why) const {
    if (has(key)) refuse(key, "null", why);
  }

 private:
  const json& object_;
  std::string where_, path_;
};

constexpr double smallest_eps = 1e-30;

void read_gpt2(const Fields& f, ModelShape& s) {
  s.vocab = f.count("vocab_size");
  s.context = f.count("n_positions");
  s.hidden = f.count("n_embd");
  s.layers = f.count("n_layer");
  s.heads = s.kv_heads = f.count("n_head");
  s.ffn = f.count_or("n_inner", 4 * s.hidden);
  s.norm_eps = f.number_or("layer_norm_epsilon", 1e-5, smallest_eps, 1);
  s.tied = f.flag_or("tie_word_embeddings", true);
  s.dropout = {f.rate_or("embd_pdrop", 0.1), f.rate_or("resid_pdrop", 0.1), f.rate_or("attn_pdrop", 0.1)};
  f.must_be_one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh"});  // two names of one function
  f.must_be("scale_attn_weights", true, "our attention divides by the root of the head's width");
  f.must_be("scale_attn_by_inverse_layer_idx", false, "our attention has the same scale in every layer");
  f.must_be("add_cross_attention", false, "there is no encoder to attend to");
}

// What rope_scaling (transformers 4) or rope_parameters (5) says of stretched positions.
RopeScaling read_rope_scaling(const Fields& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key) || rope.at(key) == "default") return {};
  if (rope.at(key) != "llama3")
    rope.refuse(key, "default or llama3", "other scaled rotary positions are not built in");
  for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"})
    if (!rope.has(needed)) rope.refuse(needed, "a number, as rope_type is llama3");
  RopeScaling s{rope.number_or("factor", 0, 1, 1e6), rope.number_or("low_freq_factor", 0, 1e-6, 1e6),
                rope.number_or("high_freq_factor", 0, 1e-6, 1e6), rope.count("original_max_position_embeddings")};
  if (s.high <= s.low) rope.refuse("high_freq_factor", fmt::format("more than low_freq_factor ({})", s.low));
  return s;
}

// Theta from rope_theta (4) or rope_parameters (5), in the file or inside the object; what is given twice must agree.
void read_rope(const Fields& f, ModelShape& s, double otherwise) {
  constexpr double most = 1e15;
  double theta = f.number_or("rope_theta", otherwise, 1, most);
  bool known = false;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!f.has(key)) continue;
    Fields rope = f.inside(key);
    RopeScaling scaling = read_rope_scaling(rope);
    if (known && scaling != s.rope_scaling) f.refuse(key, "what rope_scaling says");
    s.rope_scaling = scaling;
    known = true;
    rope.must_be("partial_rotary_factor", 1.0, "our rotary positions turn the whole head");
    double inner = rope.number_or("rope_theta", theta, 1, most);
    if (f.has("rope_theta") && inner != theta)
      rope.refuse("rope_theta", fmt::format("rope_theta's {}", theta));
    theta = inner;
  }
  s.rope_theta = theta;
}

// Windows that a sequence can outgrow are kept in the shape: users of it see that it does not. Qwen2 has them in some
// layers only, which its shape could not tell again.
void read_window(const Fields& f, ModelShape& s, std::string_view type) {
  if (type == "mistral") {
    bool none = f.given("sliding_window") && !f.has("sliding_window");
    s.window = none ? 0 : f.count_or("sliding_window", 4096);
  } else if (type == "mixtral") {
    s.window = f.count_or("sliding_window", 0);
  } else if (f.flag_or("use_sliding_window", type == "llama") && f.has("sliding_window") &&
             f.count("sliding_window") < s.context) {
    f.refuse("sliding_window", fmt::format("null, or at least the context of {}", s.context),
             "our attention sees the whole sequence");
  }
  if (!f.has("layer_types")) return;
  for (const json& each : f.at("layer_types"))
    if (each != "full_attention" && !((type == "mistral" || type == "mixtral") && each == "sliding_attention"))
      f.refuse("layer_types", "full_attention in every layer", "our attention sees the whole sequence");
}

// How a model with experts is trained, in a key of ours.
void read_training(const Fields& f, Experts& x) {
  constexpr auto routers = names_of(Router{});
  const std::string wanted = f.has("router") && f.at("router").is_string() ? f.at("router").get<std::string>() : "";
  const auto found = std::find(routers.begin(), routers.end(), wanted);
  if (found == routers.end()) f.refuse("router", fmt::format("{}", fmt::join(routers, ", ")));
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

void read_experts(const Fields& f, ModelShape& s, std::string_view type) {
  Experts& x = s.experts;
  const bool mixtral = type == "mixtral";
  x.count = mixtral ? f.count_or("num_local_experts", 8) : f.count_or("num_experts", 60);
  x.top_k = f.count_or("num_experts_per_tok", mixtral ? 2 : 4);
  x.ffn = mixtral ? s.ffn : f.count_or("moe_intermediate_size", 1408);
  x.aux_loss = f.flag_or("output_router_logits", false) ? f.number_or("router_aux_loss_coef", 0.001, 0, 1e9) : 0;
  x.z_loss = 0;
  if (mixtral) {
    if (f.number_or("router_jitter_noise", 0, 0, 1) != 0) f.refuse("router_jitter_noise", "0", "it is not built in");
  } else {
    x.normalise = f.flag_or("norm_topk_prob", false);
    x.every = f.count_or("decoder_sparse_step", 1);
    const bool none = f.has("shared_expert_intermediate_size") && f.at("shared_expert_intermediate_size") == 0;
    x.shared = none ? 0 : f.count_or("shared_expert_intermediate_size", 5632);
    if (f.has("mlp_only_layers"))
      for (const json& layer : f.at("mlp_only_layers"))
        if (layer != x.dense_first++)
          f.refuse("mlp_only_layers", "the first layers", "other layers have experts or have not by decoder_sparse_step");
  }
  if (f.has("megalith_experts")) read_training(f.inside("megalith_experts"), x);
  if (x.top_k > x.count) f.refuse("num_experts_per_tok", fmt::format("at most the {} experts", x.count));
}

// Those of one kind; where a file is silent, each class has its own default.
void read_llama(const Fields& f, ModelShape& s, std::string_view type) {
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
  s.norm_eps = f.number_or("rms_norm_eps", mixtral ? 1e-5 : 1e-6, smallest_eps, 1);
  s.tied = f.flag_or("tie_word_embeddings", false);
  s.dropout.attention = f.rate_or("attention_dropout", 0);
  s.mistral = mistral;
  if (type == "llama") s.output_bias = f.flag_or("attention_bias", false);
  s.qkv_bias = type == "qwen2" || s.output_bias || (qwen2 && f.flag_or("qkv_bias", true));
  if (sparse) read_experts(f, s, type);
  read_rope(f, s, mixtral ? 1e6 : 10000);
  read_window(f, s, type);
  f.must_be_one_of("hidden_act", {"silu", "swish"});
  f.must_be("mlp_bias", false, "biases in the feed-forward layer are not built in");
  f.must_be("partial_rotary_factor", 1.0, "our rotary positions turn the whole head");
  int64_t head_dim = f.count_or("head_dim", s.hidden / s.heads);
  if (f.has("head_dim") && head_dim * s.heads != s.hidden) s.head_size = head_dim;
  if (head_dim % 2 != 0) f.refuse(f.has("head_dim") ? "head_dim" : "num_attention_heads", "heads of an even width");
  if (s.heads % s.kv_heads != 0)
    f.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads ({})", s.heads));
}

void read_bert(const Fields& f, ModelShape& s) {
  s.vocab = f.count("vocab_size");
  s.context = f.count_or("max_position_embeddings", 512);
  s.hidden = f.count("hidden_size");
  s.layers = f.count("num_hidden_layers");
  s.heads = s.kv_heads = f.count("num_attention_heads");
  s.ffn = f.count("intermediate_size");
  s.token_types = f.count_or("type_vocab_size", 2);
  s.norm_eps = f.number_or("layer_norm_eps", 1e-12, smallest_eps, 1);
  s.tied = f.flag_or("tie_word_embeddings", true);
  double hidden = f.rate_or("hidden_dropout_prob", 0.1);
  s.dropout = {hidden, hidden, f.rate_or("attention_probs_dropout_prob", 0.1)};
  f.must_be_one_of("hidden_act", {"gelu"});
  f.must_be("position_embedding_type", "absolute", "our bert learns absolute positions");
  f.must_be("is_decoder", false, "our bert sees both sides");
  f.must_be("add_cross_attention", false, "there is no encoder to attend to");
}

}  // namespace

ModelShape parse_hf_config(std::string_view text, const std::string& where) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw UserError({where, "", "a JSON object", "something else", "is it a model's config.json?"});
  Fields f(object, where);
  ModelShape s;
  json type = f.has("model_type") ? f.at("model_type") : json();
  if (type == "gpt2") {
    s.arch = Arch::gpt2;
    read_gpt2(f, s);
  } else if (type == "llama" || type == "mistral" || type == "qwen2" || type == "mixtral" || type == "qwen2_moe" ||
             type == "megalith_experts") {
    s.arch = Arch::llama;
    read_llama(f, s, type.get_ref<const std::string&>());
  } else if (type == "bert") {
    s.arch = Arch::bert;
    read_bert(f, s);
  } else {
    f.refuse("model_type", "gpt2, llama, mistral, qwen2, mixtral, qwen2_moe or bert");
  }
  f.must_be_absent("quantization_config", "weights must be float32, bfloat16 or float16");
  if (s.head_size == 0 && s.hidden % s.heads != 0)
    f.refuse(s.arch == Arch::gpt2 ? "n_head" : "num_attention_heads",
             fmt::format("a divisor of the width {}", s.hidden));
  if (f.has("megalith_dropout")) {
    Fields ours = f.inside("megalith_dropout");
    s.dropout.embedding = ours.rate_or("embedding", 0);
    s.dropout.residual = ours.rate_or("residual", 0);
  }
  return s;
}

SpecialIds read_hf_special_ids(const std::filesystem::path& dir) {
  json object = json::parse(read_file(dir / "config.json"), nullptr, /*allow_exceptions=*/false);
  auto id = [&](const char* key) -> std::optional<int64_t> {
    json value = object.is_object() ? object.value(key, json()) : json();
    if (value.is_array() && !value.empty()) value = value.front();
    if (!value.is_number_integer() || value < 0) return std::nullopt;
    return value.get<int64_t>();
  };
  return {id("bos_token_id"), id("eos_token_id")};
}

ModelShape read_hf_config(const std::filesystem::path& dir) {
  std::filesystem::path path = dir / "config.json";
  return parse_hf_config(read_file(path), path.string());
}

}  // namespace megalith
