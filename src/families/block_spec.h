// A model as a list of blocks, each a list of parameters in one flat buffer: names and shapes are Hugging Face's.
// Everything else (buffers, checkpoints, shards, the optimizer) follows from this list.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "families/model_shape.h"
#include "layout/mesh.h"
#include "schedule/schedule.h"

namespace megalith {

// Which part of a whole parameter a rank of the tensor axis holds: of one dimension, one or more ranges, one after the
// other (GPT-2's q, k, v in one matrix are three).
struct ParameterCut {
  struct Range {
    int64_t begin, end;
    bool operator==(const Range&) const = default;
  };
  size_t dimension = 0;
  std::vector<Range> ranges;   // rising; empty: all of it
};

struct ParameterSpec {
  std::string name;            // Hugging Face's
  std::vector<int64_t> shape;  // Hugging Face's, so also its element order; where it is cut, of the part that is here
  double initial_std = 0;      // > 0: normal with this deviation; 0: constant `initial`
  double initial = 0;
  bool decays = false;         // takes weight decay: matrices and tables do, norms and biases do not
  bool joins_previous = false; // follows the parameter before it without a gap, so that both together are one
                               // larger matrix (q, k, v; gate, up)
  double sign_rate = 0;        // > 0: no gradient descends here; it moves so much against the sign of what its gradient
                               // has counted (a router's balancing bias)
  bool of_expert = false;      // one expert's: along the expert axis a rank has some experts whole, and nothing of others
  bool begins_expert = false;  // the first of an expert's
  bool wide = false;           // computed with in float32 whatever the rest is: a router's
  int64_t offset = 0;          // elements from the start of the block's flat buffer; set by list_blocks
  int64_t number = 0;          // in the model, the same for every layout: keys random numbers; set by list_blocks
  std::vector<int64_t> whole_shape = shape;  // Hugging Face's, however it is cut
  ParameterCut cut;

  int64_t size() const;        // elements here
  int64_t whole_size() const;
  // Whether every rank of the tensor axis has its own part. A parameter that is not cut is on all of them the same, and
  // the gradient that each has is a share: the gradient is their sum. (Of one rank: all of it.)
  bool is_cut() const { return !cut.ranges.empty(); }
};

// Elements [begin, end) of the part that is here, as runs that are contiguous in the whole parameter, in rising order:
// run(first element in the whole, first element here, elements).
template <class Run>
void for_each_contiguous(const ParameterSpec& parameter, int64_t begin, int64_t end, const Run& run);

// Elements [begin, end) of a block's flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// A range that can come from a disk and go there by itself: one expert, or what comes before them all.
struct Segment {
  FlatRange range;
  bool spread = false;   // experts that are spread over ranks: fewer have the same ones than have the same rest
  int64_t expert = -1;   // which of the experts that are here; -1: none, or several
};
// Neighbours that the same ranks have, as one.
std::vector<Segment> by_ranks(const std::vector<Segment>& parts);

struct BlockSpec {
  std::string name;            // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  int64_t layer = -1;          // number of the transformer layer; -1 for the others
  std::vector<ParameterSpec> parameters;
  int64_t flat_size = 0;       // elements of the flat buffer, alignment gaps included
  std::vector<Segment> segments; // of it, one after the other; every parameter is in one
  // Elements of wide parameters that begin before element `flat` of the buffer, or of those it is in, before it.
  int64_t wide_before(int64_t flat) const;
  const ParameterSpec& parameter(const std::string& suffix) const;  // the one whose name ends so
  const ParameterSpec* find(const std::string& suffix) const;       // null: there is none
};

std::vector<BlockSpec> list_blocks(const ModelShape& shape, const Mesh& mesh = {});

// Elements of `element_bytes` that the buffer takes that a block computes with (model/computing_buffer.h). In 16 bits, wide
// parameters lie there once more, in float32.
int64_t computing_elements(const BlockSpec& spec, int64_t element_bytes);

// Number of trainable parameters of the whole model; tied tables count once.
int64_t parameter_count(const ModelShape& shape);

// Alignment of parameters inside flat buffers, in elements: 64 bytes of float32.
inline constexpr int64_t kFlatAlign = 16;
// And of parts: a page of float32, so that each can come from a disk and go there by itself.
inline constexpr int64_t kPartAlign = 1024;

template <class Run>
void for_each_contiguous(const ParameterSpec& parameter, int64_t begin, int64_t end, const Run& run) {
  if (begin >= end) return;
  if (!parameter.is_cut()) return run(begin, begin, end - begin);
  // The part as rows of ranges: all dimensions after the one that is cut belong to an element of it.
  int64_t inner = 1;
  for (size_t d = parameter.cut.dimension + 1; d < parameter.shape.size(); d++) inner *= parameter.shape[d];
  const int64_t here = inner * parameter.shape[parameter.cut.dimension];
  const int64_t whole = inner * parameter.whole_shape[parameter.cut.dimension];
  for (int64_t row = begin / here; row * here < end; row++) {
    int64_t at = row * here;  // where the range begins, here
    for (const ParameterCut::Range& range : parameter.cut.ranges) {
      const int64_t size = inner * (range.end - range.begin);
      const int64_t from = std::max(begin, at), to = std::min(end, at + size);
      if (from < to) run(row * whole + inner * range.begin + from - at, from, to - from);
      at += size;
    }
  }
}

}  // namespace megalith
