// The sizes that facts are computed from: what one rank has of a model and of a micro-batch.
#pragma once
#include <cstdint>
#include <vector>

#include "base/number_formats.h"
#include "families/model_shape.h"
#include "layout/cuts.h"
#include "layout/mesh.h"

namespace megalith {

struct MicroBatchShape {
  int64_t sequences = 1;
  int64_t length = 1;
  double target_fraction = 1;  // of the positions: masked objectives send only those through the head
  int64_t micros = 1;          // micro-batches a step: together they keep no more rows aside than the table has
  int64_t kept = 0;            // tokens of a sequence in the layers that drop some; 0: none does
  std::vector<int64_t> dropping_layers;
  int64_t tokens() const { return sequences * length; }
};

// How numbers are kept for backward.
struct SavedRows {
  int64_t e = 4;  // bytes of a number as it is computed with
  Packing packing = Packing::fp32;
  bool packs() const { return packing != Packing::fp32; }
  int64_t row(int64_t width) const;                                     // bytes of a row
  int64_t more(int64_t width) const { return e * width - row(width); }  // of a row that is unpacked
};

// Heads, widths and vocabulary are those of a rank of the tensor axis, positions those of a rank of the context axis.
// Letters are those of CONTRIBUTING.md.
struct RankSizes {
  const ModelShape& s;
  const Mesh& mesh;
  MicroBatchShape m;  // whole sequences
  int64_t e;          // bytes of an element
  SavedRows kept;

  int64_t C = s.hidden, F = s.ffn / mesh.size(Axis::tensor), D = s.head_dim(), H = s.heads / mesh.size(Axis::tensor),
          A = H * D, KV = s.kv_heads / mesh.size(Axis::tensor) * D, X = A + 2 * KV;
  int64_t V = mine(s.vocab);
  int64_t N = m.sequences * context_length(m.length, mesh.size(Axis::context), mesh.coordinate(Axis::context));
  int64_t S = mine(N);  // rows between products

  bool shares_rows() const { return mesh.size(Axis::tensor) > 1; }
  int64_t mine(int64_t n) const {  // of n things cut along the tensor axis
    return cut_point(n, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor) + 1) - cut_point(n, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor));
  }
  // Bytes that this rank sends: its rows of all to the others, and its summands of the others' rows to them.
  int64_t gather_bytes(int64_t rows) const { return e * mine(rows) * (mesh.size(Axis::tensor) - 1) * C; }
  int64_t sum_bytes(int64_t rows) const { return e * (rows - mine(rows)) * C; }
  // A 16-bit product of a weight's gradient, and its float32 copy while it is added up.
  int64_t product_bytes(int64_t rows, int64_t columns) const { return e < 4 ? 6 * rows * columns : 0; }
};

}  // namespace megalith
