// GPT2LMHeadModel. Keys and defaults are those of transformers' GPT2Config.
#include <array>
#include <nlohmann/json.hpp>

#include "families/hf_fields.h"
#include "families/list.h"

namespace megalith::gpt2 {

HfNames hf_names() {
  static constexpr std::array<std::string_view, 1> model_types{"gpt2"};
  static constexpr std::array<HfNames::Pair, 1> tied{{{"transformer.wte.weight", "lm_head.weight"}}};
  static constexpr std::array<std::string_view, 2> buffers{"attn.bias", "attn.masked_bias"};
  return {.model_types = model_types, .heads_key = "n_head", .prefix = "transformer.", .tied = tied, .buffers = buffers};
}

void read_config(const HfFields& f, ModelShape& s) {
  s.vocab = f.count("vocab_size");
  s.context = f.count("n_positions");
  s.hidden = f.count("n_embd");
  s.layers = f.count("n_layer");
  s.heads = s.kv_heads = f.count("n_head");
  s.ffn = f.count_or("n_inner", 4 * s.hidden);
  s.norm_eps = f.number_or("layer_norm_epsilon", 1e-5, kSmallestEps, 1);
  s.tied = f.flag_or("tie_word_embeddings", true);
  s.dropout = {f.rate_or("embd_pdrop", 0.1), f.rate_or("resid_pdrop", 0.1), f.rate_or("attn_pdrop", 0.1)};
  f.must_be_one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh"});  // two names for the same function
  f.must_be("scale_attn_weights", true, "attention without this scale is not supported");
  f.must_be("scale_attn_by_inverse_layer_idx", false, "a different scale in each layer is not supported");
  f.must_be("add_cross_attention", false, "cross-attention is not supported");
}

void write_config(const ModelShape& s, nlohmann::ordered_json& config) {
  config = {{"architectures", {"GPT2LMHeadModel"}},
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

}  // namespace megalith::gpt2
