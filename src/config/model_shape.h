// What a model is made of, as numbers: everything that its parameters' names and shapes follow from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

enum class Arch { gpt2, llama, bert };

struct Dropout {
  double embedding = 0;  // after the embedding's sum
  double residual = 0;   // on what each sub-layer adds to the residual stream
  double attention = 0;  // on attention probabilities
  bool any() const { return embedding > 0 || residual > 0 || attention > 0; }
  bool operator==(const Dropout&) const = default;
};

struct ModelShape {
  Arch arch = Arch::gpt2;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;     // llama: grouped-query attention; = heads elsewhere
  int64_t ffn = 0;          // width of the feed-forward layer
  int64_t vocab = 0;
  int64_t context = 0;      // longest sequence (rows of learned positions; Hugging Face's max_position_embeddings)
  int64_t token_types = 0;  // bert: rows of the token-type table; 0 elsewhere
  bool tied = true;         // the head multiplies with the embedding table
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  Dropout dropout;
  int64_t head_dim() const { return hidden / heads; }
  bool operator==(const ModelShape&) const = default;
};

std::string_view name(Arch arch);

// Number of trainable parameters; tied tables count once.
int64_t parameter_count(const ModelShape& shape);

}  // namespace megalith
