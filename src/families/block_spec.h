// A model as a list of blocks. Each block is a list of parameters in one flat buffer, with the names and shapes of
// Hugging Face. Buffers, checkpoints, shards and the optimizer all follow from this list.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "families/model_shape.h"
#include "layout/mesh.h"
#include "schedule/schedule.h"

namespace megalith {

// The part of a parameter that a rank of the tensor axis holds: one or more ranges of one dimension, concatenated.
// GPT-2's q, k, v in one matrix are three ranges.
struct ParameterCut {
  struct Range {
    int64_t begin, end;
    bool operator==(const Range&) const = default;
  };
  size_t dimension = 0;
  std::vector<Range> ranges;   // sorted; empty: the whole parameter
};

struct ParameterSpec {
  std::string name;            // Hugging Face's
  std::vector<int64_t> shape;  // Hugging Face's shape and element order; if cut, the shape of this rank's part
  double initial_std = 0;      // > 0: normal distribution with this standard deviation; 0: constant `initial`
  double initial = 0;
  bool decays = false;         // true if weight decay applies: for matrices and tables, not for norms and biases
  bool joins_previous = false; // follows the parameter before it without a gap, so that both together are one
                               // larger matrix (q, k, v; gate, up)
  // > 0: the optimizer does not update this parameter. Each step moves it by this much against the sign of its gradient
  // (the balancing bias of a router)
  double sign_rate = 0;
  // belongs to one expert: along the expert axis, a rank has whole experts, and nothing of the others
  bool of_expert = false;
  bool begins_expert = false;  // first parameter of an expert
  bool wide = false;           // computed in float32 even if the rest is 16-bit (routers)
  int64_t offset = 0;          // elements from the start of the block's flat buffer; set by list_blocks
  int64_t number = 0;          // index in the model, the same for every layout; key of random numbers; set by list_blocks
  std::vector<int64_t> whole_shape = shape;  // Hugging Face's shape, without any cut
  ParameterCut cut;

  int64_t size() const;        // elements of this rank's part
  int64_t whole_size() const;
  // True if every rank of the tensor axis has its own part. Otherwise all these ranks have the whole parameter. Each
  // then has a share of its gradient, and the gradient is the sum of the shares.
  bool is_cut() const { return !cut.ranges.empty(); }
};

// Splits elements [begin, end) of this rank's part into runs that are contiguous in the whole parameter. Calls
// run(first element in the whole, first element in the part, number of elements) in rising order.
template <class Run>
void for_each_contiguous(const ParameterSpec& parameter, int64_t begin, int64_t end, const Run& run);

// Elements [begin, end) of a block's flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// A range that is read from and written to disk separately: one expert, or everything before the experts.
struct Segment {
  FlatRange range;
  bool spread = false;   // experts that are spread over ranks: fewer ranks hold an expert than the rest of the block
  int64_t expert = -1;   // index among the experts of this rank; -1: no expert, or several
};
// Joins neighbouring segments that the same ranks hold.
std::vector<Segment> by_ranks(const std::vector<Segment>& parts);

struct BlockSpec {
  std::string name;            // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  int64_t layer = -1;          // index of the transformer layer; -1 for embedding and head
  std::vector<ParameterSpec> parameters;
  int64_t flat_size = 0;       // elements of the flat buffer, including alignment gaps
  std::vector<Segment> segments; // consecutive ranges of the flat buffer; every parameter is in one of them
  // Returns how many elements of wide parameters are before element `flat` of the flat buffer.
  int64_t wide_before(int64_t flat) const;
  const ParameterSpec& parameter(const std::string& suffix) const;  // the parameter whose name ends with `suffix`
  const ParameterSpec* find(const std::string& suffix) const;       // null if no name ends with `suffix`
};

std::vector<BlockSpec> list_blocks(const ModelShape& shape, const Mesh& mesh = {});

// Returns the size of the buffer that a block computes with (model/computing_buffer.h), in elements of `element_bytes`.
// A 16-bit buffer also contains a float32 copy of the wide parameters.
int64_t computing_elements(const BlockSpec& spec, int64_t element_bytes);

// Returns the number of trainable parameters of the whole model. Tied tables count once.
int64_t parameter_count(const ModelShape& shape);

// Alignment of parameters inside flat buffers, in elements: 64 bytes of float32.
inline constexpr int64_t kFlatAlign = 16;
// Alignment of experts, in elements: a page of float32 (4 KiB), so that each expert can be read and written separately.
inline constexpr int64_t kPartAlign = 1024;

template <class Run>
void for_each_contiguous(const ParameterSpec& parameter, int64_t begin, int64_t end, const Run& run) {
  if (begin >= end) return;
  if (!parameter.is_cut()) return run(begin, begin, end - begin);
  // Treats the part as rows of ranges. All dimensions after the cut dimension form one element of a range.
  int64_t inner = 1;
  for (size_t d = parameter.cut.dimension + 1; d < parameter.shape.size(); d++) inner *= parameter.shape[d];
  const int64_t here = inner * parameter.shape[parameter.cut.dimension];
  const int64_t whole = inner * parameter.whole_shape[parameter.cut.dimension];
  for (int64_t row = begin / here; row * here < end; row++) {
    int64_t at = row * here;  // begin of the range in this rank's part
    for (const ParameterCut::Range& range : parameter.cut.ranges) {
      const int64_t size = inner * (range.end - range.begin);
      const int64_t from = std::max(begin, at), to = std::min(end, at + size);
      if (from < to) run(row * whole + inner * range.begin + from - at, from, to - from);
      at += size;
    }
  }
}

}  // namespace megalith
