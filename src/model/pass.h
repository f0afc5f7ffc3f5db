// What a block needs to know of the micro-batch that goes through it, besides the activation.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "model/key_value_cache.h"

namespace megalith {

// Which positions a query may see. Rows beyond what `prefix` says are causal.
enum class Visibility { causal, all, prefix };

struct Pass {
  int64_t sequences = 0;           // B
  int64_t length = 0;              // T
  at::Tensor ids_N;                // int64, N = B * T
  at::Tensor targets_N;            // int64, kNoTarget where there is none; undefined outside of training and evaluation
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix_B;   // Visibility::prefix
  at::Tensor document_begin_N;     // int64: where in its sequence each position's document begins, which is all it
                                   // sees and where its positions count from; undefined: sequences are whole
  std::vector<int64_t> positions_N;  // where tokens stand, if that does not follow from the order: tokens were dropped
  TokenDropping dropping;          // in training
  bool dropout = false;            // on in training
  uint64_t seed = 0;
  int64_t step = 0;                // with first_sequence: keys dropout
  int64_t first_sequence = 0;
  double gradient_scale = 1;       // of each target's loss: 1 / targets of the whole step, times the loss scale
  KeyValueCache* cache = nullptr;  // borrowed; null outside of generation

  int64_t tokens() const { return sequences * length; }
};

}  // namespace megalith
