// Keys and values of earlier positions, stored where attention reads them. Used only for generation.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "families/model_shape.h"

namespace megalith {

// Each sequence has a slot and its own length, so a batch of prompts of different lengths needs no padding. Capacity grows
// by doubling. A new token does not copy the earlier ones.
struct KeyValueCache {
  struct Layer {
    at::Tensor keys, values;  // [slots, kv_heads, capacity, head_dim]
  };
  std::vector<Layer> layers;
  std::vector<int64_t> positions;  // by slot: number of tokens in it
  // The slots of the sequences of the next pass, in their order. If empty, prepare fills it with 0, 1, 2, ...
  std::vector<int64_t> active;

  // Makes slots and capacity. Call it before a pass of `sequences` sequences with `length` tokens each.
  void prepare(const ModelShape& shape, at::ScalarType type, int64_t sequences, int64_t length);
  void advance(int64_t length);    // call it after that pass
  void forget(int64_t slot) { positions.at(static_cast<size_t>(slot)) = 0; }
  int64_t first_position(int64_t sequence) const {
    return positions[static_cast<size_t>(active[static_cast<size_t>(sequence)])];
  }
};

}  // namespace megalith
