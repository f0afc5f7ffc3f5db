// Writing config.json. Keys and defaults are those of transformers' GPT2Config, LlamaConfig, MistralConfig,
// Qwen2Config, MixtralConfig, Qwen2MoeConfig and BertConfig (5.22; the older spellings rope_theta and torch_dtype are
// for 4.x).
#include "checkpoint/hf_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/names.h"

namespace megalith {
namespace {

using nlohmann::ordered_json;

ordered_json gpt2(const ModelShape& s) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", s.vocab},
          {"n_positions", s.context},
          {"n_embd", s.hidden},
          {"n_layer", s.layers},
          {"n_head", s.heads},
          {"n_inner", s.ffn},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", s.dropout.residual},
          {"embd_pdrop", s.dropout.embedding},
          {"attn_pdrop", s.dropout.attention},
          {"layer_norm_epsilon", s.norm_eps},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"reorder_and_upcast_attn", false}};
}

// transformers 4 reads rope_theta and rope_scaling, 5 reads rope_parameters.
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

// Which of the kin has exactly these keys and biases: only Qwen2 leaves the output without one, and transformers' Llama
// wants heads that divide the width even where their own is given; Mistral does not.
ordered_json llama(const ModelShape& s) {
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
  if (qwen2 && s.head_size == 0) config.erase("head_dim");  // a key that their Qwen2 folders do not have
  if (!qwen2 && !mistral) config["attention_bias"] = s.qkv_bias;
  if (!qwen2 && !mistral) config["mlp_bias"] = false;
  return config;
}

// Experts in a Llama: theirs where one of their classes computes the same, else a type that they refuse.
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
  if (s.head_size == 0) config.erase("head_dim");  // as their own folders are
  // How it is trained, which their keys do not say.
  config["megalith_experts"] = {{"router", name_of(x.router)}, {"normalise", x.normalise}, {"capacity", x.capacity},
                                {"group", x.group},            {"across", x.across},       {"aux_loss", x.aux_loss},
                                {"z_loss", x.z_loss},          {"jitter", x.jitter},       {"bias_rate", x.bias_rate},
                                {"share_layers", x.share_layers}};
}

ordered_json bert(const ModelShape& s) {
  return {{"architectures", {"BertForMaskedLM"}},
          {"model_type", "bert"},
          {"vocab_size", s.vocab},
          {"hidden_size", s.hidden},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"intermediate_size", s.ffn},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", s.dropout.residual},
          {"attention_probs_dropout_prob", s.dropout.attention},
          {"max_position_embeddings", s.context},
          {"type_vocab_size", s.token_types},
          {"layer_norm_eps", s.norm_eps},
          {"position_embedding_type", "absolute"}};
}

ordered_json id_or_null(std::optional<int64_t> id) {
  return id ? ordered_json(*id) : ordered_json();
}

}  // namespace

std::string hf_config(const ModelShape& shape, const SpecialIds& ids, DType dtype) {
  ordered_json config;
  switch (shape.arch) {
    case Arch::gpt2:
      config = gpt2(shape);
      break;
    case Arch::llama:
      config = llama(shape);
      if (shape.experts.any()) add_experts(config, shape);
      break;
    case Arch::bert:
      config = bert(shape);
      break;
  }
  // Theirs has one rate for BERT's embedding and residual stream and none for Llama's: ours in a key that
  // they pass over.
  bool told = shape.arch == Arch::gpt2 ||
              (shape.arch == Arch::bert && shape.dropout.embedding == shape.dropout.residual);
  if (!told && (shape.dropout.embedding > 0 || shape.dropout.residual > 0))
    config["megalith_dropout"] = {{"embedding", shape.dropout.embedding},
                                  {"residual", shape.dropout.residual}};
  config["initializer_range"] = 0.02;
  config["tie_word_embeddings"] = shape.tied;
  // Explicit nulls: their defaults are the ids of other vocabularies. A padding id would keep that row of the
  // embedding from learning.
  config["bos_token_id"] = id_or_null(ids.begin);
  config["eos_token_id"] = id_or_null(ids.end);
  config["pad_token_id"] = nullptr;
  config["use_cache"] = true;
  config["torch_dtype"] = torch_name(dtype);
  config["dtype"] = torch_name(dtype);
  return config.dump(2) + "\n";
}

}  // namespace megalith
