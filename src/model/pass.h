// Describes the micro-batch that a block computes: everything that the block needs besides the activation.
//
// If blocks are split over ranks, a pass still describes whole sequences. `runs`, `first_row` and `last_row` say which rows
// are on this rank (model/local_rows.h). N is the number of rows that a rank of the context axis holds, B * length_here.
// Between the products of a layer, a rank of the tensor axis holds rows [first_row, last_row) of these N rows.
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

// The positions that a query may see. With `prefix`, queries after the prefix are causal.
enum class Visibility { causal, all, prefix };
inline Visibility visibility_of(const Family& family, bool has_prefix) {
  if (family.bidirectional) return Visibility::all;
  return has_prefix ? Visibility::prefix : Visibility::causal;
}

struct Pass {
  int64_t sequences = 0;           // B
  int64_t length = 0;              // T
  std::vector<PositionRange> runs;   // positions of each sequence that are on this rank, rising; empty: all
  int64_t first_row = 0;
  int64_t last_row = -1;           // -1: N
  std::vector<int64_t> tokens_B;   // tokens of each sequence; the rest of its positions is padding. Empty: no padding
  at::Tensor ids_N;                // int64
  at::Tensor targets_N;            // int64, kNoTarget: no target; undefined outside of training and evaluation
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix_B;   // Visibility::prefix: tokens in the prefix of each sequence
  // The next two describe whole sequences, even if only a part of each is on this rank:
  at::Tensor document_begin_N;     // int64: where in its sequence the document of each position begins. A position sees
                                   // only its document and counts from its start. Undefined: a sequence is one document
  std::vector<int64_t> positions_N;  // positions of the tokens, if tokens were dropped; else they follow from the order
  TokenDropping dropping;          // only in training
  bool dropout = false;            // true in training
  uint64_t seed = 0;
  int64_t step = 0;                // keys the random numbers of dropout, together with first_sequence
  int64_t first_sequence = 0;
  double gradient_scale = 1;       // factor of the loss of each target: loss scale / targets of the whole step
  // Layers with experts:
  bool explores = false;           // routers use random numbers; only in training
  double balance_scale = 0;        // factor of the routers' losses: loss scale / sequences of the whole step
  RoutingRecord* routing = nullptr;  // borrowed: receives the decisions of the routers; null: no record
  ExpertLoader* experts = nullptr;    // borrowed: loads experts from disk; null: all are in memory
  KeyValueCache* cache = nullptr;  // borrowed; null outside of generation

  int64_t tokens_of(int64_t sequence) const { return tokens_B.empty() ? length : tokens_B[static_cast<size_t>(sequence)]; }
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
