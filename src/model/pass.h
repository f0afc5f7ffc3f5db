// What a block needs to know of the micro-batch that goes through it, besides the activation.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace megalith {

// Which positions a query may see. Rows beyond what `prefix` says are causal.
enum class Visibility { causal, all, prefix };

// Keys and values of earlier positions, one pair a layer: generation only.
struct KeyValueCache {
  struct Layer {
    at::Tensor keys, values;  // [B, kv_heads, positions so far, head_dim]; undefined at first
  };
  std::vector<Layer> layers;
  int64_t positions = 0;      // of the tokens already in the cache
};

struct Pass {
  int64_t sequences = 0;           // B
  int64_t length = 0;              // T
  at::Tensor ids_N;                // int64, N = B * T
  at::Tensor targets_N;            // int64, kNoTarget where there is none; undefined outside of training and evaluation
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix_B;   // Visibility::prefix
  at::Tensor document_begin_N;     // int64: where in its sequence each position's document begins, which is all it
                                   // sees and where its positions count from; undefined: sequences are whole
  bool dropout = false;            // on in training
  uint64_t seed = 0;
  int64_t step = 0;                // with first_sequence: keys dropout
  int64_t first_sequence = 0;
  double gradient_scale = 1;       // of each target's loss: 1 / targets of the whole step, times the loss scale
  KeyValueCache* cache = nullptr;  // borrowed; null outside of generation

  int64_t tokens() const { return sequences * length; }
  int64_t first_position() const { return cache ? cache->positions : 0; }
};

}  // namespace megalith
