// The sizes and options of a model. The names and shapes of its parameters follow from them.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"

namespace megalith {

struct Family;

struct Dropout {
  double embedding = 0;  // after the sum of the embeddings
  double residual = 0;   // on what each sub-layer adds to the residual stream
  double attention = 0;  // on attention probabilities
  bool any() const { return embedding > 0 || residual > 0 || attention > 0; }
  bool operator==(const Dropout&) const = default;
};

// Llama 3's scaling of rotary positions to a longer context. Wavelengths above original_context / low are multiplied by
// `factor`. Wavelengths below original_context / high stay the same. Those in between are blended.
struct RopeScaling {
  double factor = 0;             // 0: no scaling
  double low = 0, high = 0;      // Hugging Face's low_freq_factor and high_freq_factor
  int64_t original_context = 0;
  bool operator==(const RopeScaling&) const = default;
};

// Rotary positions: pair i of a head of width D turns by theta^(-2i/D) radians per position.
struct Rope {
  double theta = 0;              // 0: no rotary positions
  RopeScaling scaling;
  bool operator==(const Rope&) const = default;
};

// How tokens are assigned to experts (model/routing).
enum class Router { softmax, noisy, switch_, gshard, expert_choice, sigmoid };
constexpr std::array<std::string_view, 6> names_of(Router) {
  return {"softmax", "noisy", "switch", "gshard", "expert_choice", "sigmoid"};
}

// Layers with experts in place of one feed-forward half. Each token passes a few experts.
struct Experts {
  int64_t count = 0;             // experts per layer; 0: every layer is dense
  int64_t every = 1;             // layer i has experts if i >= dense_first and i + 1 is a multiple of this
  int64_t dense_first = 0;
  int64_t top_k = 0;             // experts per token; expert_choice: on average
  Router router = Router::softmax;
  int64_t ffn = 0;               // width of an expert
  int64_t shared = 0;            // width of the expert that all tokens pass, weighted by a sigmoid; 0: no shared expert
  bool normalise = true;         // softmax, sigmoid: the weights of a token add up to 1
  double capacity = 0;           // an expert takes at most this times its even share of a group; 0: no limit
  int64_t group = 0;             // consecutive tokens that form a group; 0: a sequence
  int64_t across = 0;            // if above 0: a group is the tokens at one position of this many sequences
  double aux_loss = 0.01, z_loss = 0.001;
  double jitter = 0;             // switch: the router's input is multiplied by random numbers from 1 - jitter to 1 + jitter
  double bias_rate = 0.001;      // sigmoid: how far the balancing bias moves per step
  bool share_layers = false;     // all layers use attention and experts of the first layer; each has its own norms
  bool any() const { return count > 0; }
  bool in_layer(int64_t layer) const { return any() && layer >= dense_first && (layer + 1) % every == 0; }
  bool shared_from(int64_t layer) const { return share_layers && layer > 0; }
  bool has_losses() const { return router != Router::expert_choice && router != Router::sigmoid; }  // balancing losses
  bool operator==(const Experts&) const = default;
};

// What the head computes: the loss over the vocabulary, or a vector for each sequence.
enum class HeadKind { vocabulary, representation };

// The outputs whose mean is the representation of a sequence: all, the first, or the last.
enum class Pooling { mean, cls, last };
constexpr std::array<std::string_view, 3> names_of(Pooling) { return {"mean", "cls", "last"}; }

struct ModelShape {
  const Family* family = nullptr;  // not null once the model is known (families/family.h)
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;     // llama: grouped-query attention; other families: equal to heads
  int64_t head_size = 0;    // llama: width of a head; 0: hidden / heads
  int64_t ffn = 0;          // width of the feed-forward layer
  int64_t vocab = 0;
  int64_t context = 0;      // longest sequence (rows of learned positions; Hugging Face's max_position_embeddings)
  int64_t token_types = 0;  // bert: rows of the token-type table; other families: 0
  HeadKind head = HeadKind::vocabulary;
  Pooling pooling = Pooling::mean;  // of HeadKind::representation
  bool tied = true;         // a vocabulary head multiplies with the embedding table
  bool qkv_bias = false;    // llama: biases on queries, keys and values
  bool output_bias = false; // llama: bias on the attention's output
  // llama: sliding window of attention in other programs; 0: no window. Our attention has no window, so sequences must
  // not be longer than it
  int64_t window = 0;
  bool mistral = false;     // llama: folders have model_type mistral; the mathematics is the same
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  Dropout dropout;
  Experts experts;          // llama
  int64_t head_dim() const { return head_size > 0 ? head_size : hidden / heads; }
  // width of all heads together; equal to hidden in most models
  int64_t attention_width() const { return heads * head_dim(); }
  bool ties_table() const { return head == HeadKind::vocabulary && tied; }
  bool has_own_table() const { return head == HeadKind::vocabulary && !tied; }  // the head
  bool window_shortens() const { return window > 0 && window < context; }
  int64_t longest_sequence() const { return window_shortens() ? window : context; }
  bool operator==(const ModelShape&) const = default;
};

}  // namespace megalith
