// The size of a packed row of activations (model/packed_rows.h).
#pragma once
#include <cstdint>

#include "base/number_formats.h"

namespace megalith {

inline constexpr int64_t kScaleWidth = 128;  // numbers of a row that share a float32 scale, in int8
inline int64_t scales_of(int64_t width) { return (width + kScaleWidth - 1) / kScaleWidth; }

int64_t packed_row_bytes(Packing packing, int64_t width);

}  // namespace megalith
