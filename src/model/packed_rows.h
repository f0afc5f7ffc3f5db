// Stores matrices of activations in fewer bytes: as bfloat16, or as int8 with a float32 scale for every kScaleWidth numbers
// of a row. Numbers are rounded to nearest. In bfloat16 the error is at most 2^-8 of a number. In int8 it is at most 1/254
// of the largest number that shares the scale. The packed form of a row depends only on that row.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/packed_rows_facts.h"

namespace megalith {

struct PackedRows {
  at::Tensor numbers;    // bfloat16 or int8
  at::Tensor scales_NS;  // int8 only: a value is its number times its scale
};

bool can_pack(const at::Tensor& tensor);  // true for a contiguous float32 matrix
PackedRows pack_rows(const at::Tensor& x_NC, Packing packing);
at::Tensor unpack_rows(const PackedRows& rows);

}  // namespace megalith
