#include "model/packed_rows_facts.h"

#include "base/error.h"

namespace megalith {

int64_t packed_row_bytes(Packing packing, int64_t width) {
  switch (packing) {
    case Packing::fp32: return 4 * width;
    case Packing::bf16: return 2 * width;
    case Packing::int8: return width + 4 * scales_of(width);
  }
  MEGALITH_ASSERT(false, "packing {}", static_cast<int>(packing));
}

}  // namespace megalith
