// A named tensor, or a piece of one. Checkpoints consist of them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace megalith {

struct TensorPiece {
  std::string name;
  std::vector<int64_t> shape;        // of the whole tensor
  std::span<float> values;           // empty if the piece is not in memory, or not float32
  int64_t begin = 0;                 // first element of the piece
  DType type = DType::f32;           // f32, bf16 or u8
  std::span<std::byte> packed = {};  // the elements, if they are not float32
  std::span<std::byte> bytes() const { return type == DType::f32 ? std::as_writable_bytes(values) : packed; }
};

// Reads or fills a piece.
using PieceWork = std::function<void(const TensorPiece&)>;

}  // namespace megalith
