// Looks up rows of a table by id or position, and adds up their gradients.
#pragma once
#include <vector>

#include "layout/cuts.h"
#include "model/layers/linear.h"
#include "model/layers/sequence_parallel.h"
#include "model/pass.h"

namespace megalith {

// Gradient of an embedding table. If the head shares the table, `add` keeps rows apart until fold. They are summed by id, in
// token order, over the micro-batches (at most one row per distinct id). So the head's gradient is added first under every
// schedule. If the head does not share the table, `add` adds directly to the gradient.
class TableGradient {
 public:
  explicit TableGradient(bool aside) : aside_(aside) {}
  void add(const Weight& table, const at::Tensor& ids_N, const at::Tensor& g_NC);
  // Adds the rows that `add` kept, in the order in which their ids first occurred, and removes them.
  void fold(const Weight& table);

 private:
  bool aside_;
  std::vector<int64_t> ids_;    // distinct ids, in the order in which they first occurred
  std::vector<int32_t> place_;  // id -> index in ids_, or -1
  at::Tensor rows_;             // [capacity, C] in the gradient's type, grown by doubling
};

// Turns token ids into rows. Along the tensor axis, each rank has some ids. A row comes from the one rank that has its id.
class TokenTable {
 public:
  TokenTable(const ModelShape& shape, const Exchanges& exchanges)
      : shares_{exchanges.tensor},
        first_id_(cut_point(shape.vocab, exchanges.mesh.size(Axis::tensor), exchanges.mesh.coordinate(Axis::tensor))),
        gradient_(shape.ties_table()) {}

  at::Tensor forward(const Pass& pass) const;  // [pass.rows(), C]
  void backward(const at::Tensor& g_SC, const Pass& pass);
  void fold() { gradient_.fold(weight); }

  Weight weight;  // rows of the ids that this rank has

 private:
  SequenceParallel shares_;
  int64_t first_id_;
  TableGradient gradient_;
};

// Learned positions: x[n] += table[position of n], and its backward, for the rows of x on this rank.
void add_positions(const Weight& positions, at::Tensor& x_NC, const Pass& pass);
void add_position_gradient(const Weight& positions, const at::Tensor& g_NC, const Pass& pass);

}  // namespace megalith
