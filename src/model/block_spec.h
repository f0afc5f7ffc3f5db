// A model as a list of blocks, each a list of parameters in one flat buffer: names and shapes are Hugging Face's.
// Everything else (buffers, checkpoints, shards, the optimizer) follows from this list.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/model_shape.h"
#include "schedule/schedule.h"

namespace megalith {

struct ParameterSpec {
  std::string name;            // Hugging Face's
  std::vector<int64_t> shape;  // Hugging Face's, so also its element order
  double initial_std = 0;      // > 0: normal with this deviation; 0: constant `initial`
  double initial = 0;
  bool decays = false;         // takes weight decay: matrices and tables do, norms and biases do not
  bool joins_previous = false; // follows the parameter before it without a gap, so that both together are one
                               // larger matrix (q, k, v; gate, up)
  int64_t offset = 0;          // elements from the start of the block's flat buffer; set by list_blocks
  int64_t size() const;
};

struct BlockSpec {
  std::string name;            // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  int64_t layer = -1;          // number of the transformer layer; -1 for the others
  std::vector<ParameterSpec> parameters;
  int64_t flat_size = 0;       // elements of the flat buffer, alignment gaps included
  const ParameterSpec& parameter(const std::string& suffix) const;  // the one whose name ends so
};

std::vector<BlockSpec> list_blocks(const ModelShape& shape);

// Alignment of parameters inside flat buffers, in elements: 64 bytes of float32.
inline constexpr int64_t kFlatAlign = 16;

}  // namespace megalith
