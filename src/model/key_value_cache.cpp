#include "model/key_value_cache.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/tensor_ops.h"

namespace megalith {

void KeyValueCache::prepare(const ModelShape& shape, at::ScalarType type, int64_t sequences, int64_t length) {
  if (active.empty()) {
    active.resize(static_cast<size_t>(sequences));
    std::iota(active.begin(), active.end(), 0);
  }
  MEGALITH_ASSERT(std::ssize(active) == sequences, "{} active slots, {} sequences", active.size(), sequences);
  const int64_t slots = std::max(std::ssize(positions), 1 + *std::max_element(active.begin(), active.end()));
  positions.resize(static_cast<size_t>(slots), 0);
  int64_t needed = 0, kept = *std::max_element(positions.begin(), positions.end());
  for (int64_t s = 0; s < sequences; s++) needed = std::max(needed, first_position(s) + length);
  layers.resize(static_cast<size_t>(shape.layers));
  const int64_t old_slots = layers[0].keys.defined() ? layers[0].keys.size(0) : 0;
  const int64_t old_room = layers[0].keys.defined() ? layers[0].keys.size(2) : 0;
  if (old_slots >= slots && old_room >= needed) return;
  constexpr int64_t least = 64;
  const int64_t room = std::min(std::max({needed, old_room < needed ? 2 * old_room : old_room, least}),
                                std::max(needed, shape.context));
  for (Layer& layer : layers)
    for (at::Tensor* tensor : {&layer.keys, &layer.values}) {
      at::Tensor grown = tensor::empty({std::max(slots, old_slots), shape.kv_heads, room, shape.head_dim()}, type);
      if (tensor->defined() && kept > 0)
        grown.narrow(0, 0, old_slots).narrow(2, 0, kept).copy_(tensor->narrow(2, 0, kept));
      *tensor = grown;
    }
}

void KeyValueCache::advance(int64_t length) {
  for (int64_t slot : active) positions[static_cast<size_t>(slot)] += length;
}

}  // namespace megalith
