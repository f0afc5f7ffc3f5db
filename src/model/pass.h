// What a block needs to know of the micro-batch that goes through it, besides the activation.
//
// Where blocks are split over ranks, a pass still speaks of whole sequences; `runs`, `first_row` and `last_row` say what
// is here (model/local_rows.h). N are the rows that a rank of the context axis holds, B * length_here; between the products
// of a layer, a rank of the tensor axis holds rows [first_row, last_row) of those.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "families/family.h"
#include "layout/cuts.h"
#include "model/expert_loader.h"
#include "model/key_value_cache.h"
#include "model/routing/record.h"

namespace megalith {

// Which positions a query may see. Rows beyond what `prefix` says are causal.
enum class Visibility { causal, all, prefix };
inline Visibility visibility_of(const Family& family, bool has_prefix) {
  if (family.bidirectional) return Visibility::all;
  return has_prefix ? Visibility::prefix : Visibility::causal;
}

struct Pass {
  int64_t sequences = 0;           // B
  int64_t length = 0;              // T
  std::vector<PositionRange> runs;   // of each sequence, what is here, rising; empty: all of it
  int64_t first_row = 0;
  int64_t last_row = -1;           // -1: N
  at::Tensor ids_N;                // int64
  at::Tensor targets_N;            // int64, kNoTarget where there is none; undefined outside of training and evaluation
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix_B;   // Visibility::prefix
  // Of whole sequences, also where not all of them is here:
  at::Tensor document_begin_N;     // int64: where in its sequence each position's document begins, which is all it
                                   // sees and where its positions count from; undefined: sequences are whole
  std::vector<int64_t> positions_N;  // where tokens stand, if that does not follow from the order: tokens were dropped
  TokenDropping dropping;          // in training
  bool dropout = false;            // on in training
  uint64_t seed = 0;
  int64_t step = 0;                // with first_sequence: keys dropout
  int64_t first_sequence = 0;
  double gradient_scale = 1;       // of each target's loss: 1 / targets of the whole step, times the loss scale
  // Layers with experts:
  bool explores = false;           // routers draw at random, in training
  double balance_scale = 0;        // of their losses: loss scale / sequences of the whole step
  RoutingRecord* routing = nullptr;  // borrowed: what they decided, where somebody asks
  ExpertLoader* experts = nullptr;    // borrowed: loads experts from disk; null: all are in memory
  KeyValueCache* cache = nullptr;  // borrowed; null outside of generation

  int64_t length_here() const {
    if (runs.empty()) return length;
    int64_t sum = 0;
    for (const PositionRange& run : runs) sum += run.size();
    return sum;
  }
  int64_t tokens() const { return sequences * length_here(); }  // N
  int64_t rows() const { return (last_row < 0 ? tokens() : last_row) - first_row; }
};

}  // namespace megalith
