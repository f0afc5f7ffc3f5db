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

// Llama 3's stretching of rotary positions to a longer context: wavelengths beyond original_context / low grow by
// `factor`, those below original_context / high stay, the ones between are blended.
struct RopeScaling {
  double factor = 0;             // 0: none
  double low = 0, high = 0;      // Hugging Face's low_freq_factor and high_freq_factor
  int64_t original_context = 0;
  bool operator==(const RopeScaling&) const = default;
};

// Rotary positions: pair i of a head of width D turns by theta^(-2i/D) a position.
struct Rope {
  double theta = 0;              // 0: no rotary positions
  RopeScaling scaling;
  bool operator==(const Rope&) const = default;
};

struct ModelShape {
  Arch arch = Arch::gpt2;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;     // llama: grouped-query attention; = heads elsewhere
  int64_t head_size = 0;    // llama: width of a head; 0: hidden / heads
  int64_t ffn = 0;          // width of the feed-forward layer
  int64_t vocab = 0;
  int64_t context = 0;      // longest sequence (rows of learned positions; Hugging Face's max_position_embeddings)
  int64_t token_types = 0;  // bert: rows of the token-type table; 0 elsewhere
  bool tied = true;         // the head multiplies with the embedding table
  bool qkv_bias = false;    // llama: biases on queries, keys and values
  bool output_bias = false; // llama: and on the attention's output
  int64_t window = 0;       // llama: positions that attention reaches back in other programs; 0: all. Ours reaches
                            // all, so sequences must not be longer
  bool mistral = false;     // llama: folders call themselves mistral; the mathematics is the same
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  Dropout dropout;
  int64_t head_dim() const { return head_size > 0 ? head_size : hidden / heads; }
  int64_t attention_width() const { return heads * head_dim(); }  // of all heads together; hidden in most models
  int64_t longest_sequence() const { return window > 0 && window < context ? window : context; }
  bool operator==(const ModelShape&) const = default;
};

std::string_view name(Arch arch);

// Number of trainable parameters; tied tables count once.
int64_t parameter_count(const ModelShape& shape);

}  // namespace megalith
