// Rows of a table by id or position, and the gradient's way back.
#pragma once
#include <vector>

#include "layout/cuts.h"
#include "model/layers/linear.h"
#include "model/layers/sequence_parallel.h"
#include "model/pass.h"

namespace megalith {

// Gradient of an embedding table. A table that the head shares keeps its rows aside, added up by id in token
// order as micro-batches come (at most one row a distinct id), until fold: the head's share goes first, whatever
// the schedule. A table of its own is added to straight away.
class TableGradient {
 public:
  explicit TableGradient(bool aside) : aside_(aside) {}
  void add(const Weight& table, const at::Tensor& ids_N, const at::Tensor& g_NC);
  // Adds what was kept aside, in the order in which ids first came, and forgets it.
  void fold(const Weight& table);

 private:
  bool aside_;
  std::vector<int64_t> ids_;    // distinct, in the order of coming
  std::vector<int32_t> place_;  // id -> index in ids_, -1 where none
  at::Tensor rows_;             // [capacity, C] in the gradient's type, grown by doubling
};

// Tokens to rows. Along the tensor axis each rank has some ids: every row comes from the one rank that has its id.
class TokenTable {
 public:
  TokenTable(const ModelShape& shape, const Exchanges& exchanges)
      : shares_{exchanges.tensor},
        first_id_(cut_point(shape.vocab, exchanges.mesh.size(Axis::tensor), exchanges.mesh.coordinate(Axis::tensor))),
        gradient_(shape.tied) {}

  at::Tensor forward(const Pass& pass) const;  // [pass.rows(), C]
  void backward(const at::Tensor& g_SC, const Pass& pass);
  void fold() { gradient_.fold(weight); }

  Weight weight;  // of the ids that are here

 private:
  SequenceParallel shares_;
  int64_t first_id_;
  TableGradient gradient_;
};

// Learned positions: x[n] += table[position of n], and the gradient's way back, for the rows of x that are here.
void add_positions(const Weight& positions, at::Tensor& x_NC, const Pass& pass);
void add_position_gradient(const Weight& positions, const at::Tensor& g_NC, const Pass& pass);

}  // namespace megalith
