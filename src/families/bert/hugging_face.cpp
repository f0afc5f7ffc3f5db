// BertForMaskedLM. Keys and defaults are those of transformers' BertConfig.
#include <array>
#include <nlohmann/json.hpp>

#include "families/hf_fields.h"
#include "families/list.h"

namespace megalith::bert {

HfNames hf_names() {
  static constexpr std::array<std::string_view, 1> model_types{"bert"};
  // transformers computes with decoder.bias. If the table is tied, decoder.bias is tied to `bias`.
  static constexpr std::array<HfNames::Pair, 2> tied{
      {{"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
       {"cls.predictions.bias", "cls.predictions.decoder.bias"}}};
  // In transformers 5, an untied model also has bias, but computes only with decoder.bias. In 4, both are one tensor.
  static constexpr std::array<HfNames::Copy, 1> copies{{{"cls.predictions.decoder.bias", "cls.predictions.bias"}}};
  // Names in old files, converted from TensorFlow.
  static constexpr std::array<HfNames::Ending, 2> old_endings{
      {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
  static constexpr std::array<std::string_view, 1> buffers{"position_ids"};
  static constexpr std::array<std::string_view, 3> other_heads{"bert.pooler.", "pooler.", "cls.seq_relationship."};
  return {.model_types = model_types,
          .heads_key = "num_attention_heads",
          .prefix = "bert.",
          .tied = tied,
          .copies = copies,
          .old_endings = old_endings,
          .buffers = buffers,
          .other_heads = other_heads};
}

void read_config(const HfFields& f, ModelShape& s) {
  s.vocab = f.count("vocab_size");
  s.context = f.count_or("max_position_embeddings", 512);
  s.hidden = f.count("hidden_size");
  s.layers = f.count("num_hidden_layers");
  s.heads = s.kv_heads = f.count("num_attention_heads");
  s.ffn = f.count("intermediate_size");
  s.token_types = f.count_or("type_vocab_size", 2);
  s.norm_eps = f.number_or("layer_norm_eps", 1e-12, kSmallestEps, 1);
  s.tied = f.flag_or("tie_word_embeddings", true);
  double hidden = f.rate_or("hidden_dropout_prob", 0.1);
  s.dropout = {hidden, hidden, f.rate_or("attention_probs_dropout_prob", 0.1)};
  f.must_be_one_of("hidden_act", {"gelu"});
  f.must_be("position_embedding_type", "absolute", "other position embeddings are not supported for bert");
  f.must_be("is_decoder", false, "a bert that is a decoder is not supported");
  f.must_be("add_cross_attention", false, "cross-attention is not supported");
}

void write_config(const ModelShape& s, nlohmann::ordered_json& config) {
  config = {{"architectures", {"BertForMaskedLM"}},
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
  // Hugging Face has one rate, hidden_dropout_prob, for the embedding and the residual stream.
  if (s.dropout.embedding != s.dropout.residual) write_dropout(s, config);
}

}  // namespace megalith::bert
