// Keys and values of earlier positions, kept where attention reads them: generation only.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "families/model_shape.h"

namespace megalith {

// Sequences live in slots, each as long as it is: a batch of prompts of different lengths needs no padding. Room grows
// by doubling; nothing is copied from token to token.
struct KeyValueCache {
  struct Layer {
    at::Tensor keys, values;  // [slots, kv_heads, capacity, head_dim]
  };
  std::vector<Layer> layers;
  std::vector<int64_t> positions;  // by slot: of the tokens already there
  // The slots that the sequences of the next pass stand for, in their order; empty: as many as it has, from 0 on.
  std::vector<int64_t> active;

  // Before a pass of `sequences` with `length` tokens each: makes slots and room.
  void prepare(const ModelShape& shape, at::ScalarType type, int64_t sequences, int64_t length);
  void advance(int64_t length);    // after it
  void forget(int64_t slot) { positions.at(static_cast<size_t>(slot)) = 0; }
  int64_t first_position(int64_t sequence) const {
    return positions[static_cast<size_t>(active[static_cast<size_t>(sequence)])];
  }
};

}  // namespace megalith
