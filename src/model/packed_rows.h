// Matrices of activations in fewer bytes: bfloat16, or a byte a number with a float32 scale for every kScaleWidth
// numbers of a row. Rounded to nearest: the error is at most 2^-8 of a number in bfloat16, 1/254 of the largest of
// those that share the scale in a byte. A row's numbers depend on that row alone.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/packed_rows_facts.h"

namespace megalith {

struct PackedRows {
  at::Tensor numbers;    // bfloat16 or int8
  at::Tensor scales_NS;  // int8: numbers are codes times these
};

bool can_pack(const at::Tensor& tensor);  // [N, width] of float32, contiguous
PackedRows pack_rows(const at::Tensor& x_NC, Packing packing);
at::Tensor unpack_rows(const PackedRows& rows);

}  // namespace megalith
