// The sizes that facts are computed from: the part of a model and of a micro-batch that one rank has.
#pragma once
#include <cstdint>
#include <vector>

#include "base/number_formats.h"
#include "families/model_shape.h"
#include "layout/cuts.h"
#include "layout/mesh.h"

namespace megalith {

// The sequences of a whole step, if the loss compares them.
struct Compared {
  int64_t sequences = 0;       // over all ranks
  int64_t columns = 0;         // sequences of a sample; 0: sequences are not compared
  bool symmetric = false;
  int64_t ranks = 1;           // that share the sequences
};

struct MicroBatchShape {
  int64_t sequences = 1;
  int64_t length = 1;
  double target_fraction = 1;  // fraction of positions with a target: with a masked objective, only these pass the head
  // Micro-batches per step. Together they store at most as many sparse gradient rows as the table has rows.
  int64_t micros = 1;
  int64_t kept = 0;            // tokens of a sequence that dropping layers keep; 0: no layer drops tokens
  std::vector<int64_t> dropping_layers;
  Compared compared = {};
  int64_t tokens() const { return sequences * length; }
};

// Format of numbers that forward keeps for backward.
struct SavedRows {
  int64_t e = 4;  // bytes of a number during computation
  Packing packing = Packing::fp32;
  bool packs() const { return packing != Packing::fp32; }
  int64_t row(int64_t width) const;                                     // bytes of a row
  int64_t more(int64_t width) const { return e * width - row(width); }  // additional bytes of an unpacked row
};

// Heads, widths and vocabulary are the part of one rank of the tensor axis; positions are the part of one rank of the
// context axis. CONTRIBUTING.md explains the letters.
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
  int64_t mine(int64_t n) const {  // this rank's share of n things that are cut along the tensor axis
    return cut_point(n, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor) + 1) - cut_point(n, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor));
  }
  // Bytes that this rank sends to gather `rows` rows on all ranks, and to sum `rows` rows over the ranks
  // (reduce-scatter).
  int64_t gather_bytes(int64_t rows) const { return e * mine(rows) * (mesh.size(Axis::tensor) - 1) * C; }
  int64_t sum_bytes(int64_t rows) const { return e * (rows - mine(rows)) * C; }
  // Bytes of a 16-bit product for a weight gradient, and of its float32 copy while it is accumulated.
  int64_t product_bytes(int64_t rows, int64_t columns) const { return e < 4 ? 6 * rows * columns : 0; }
};

}  // namespace megalith
