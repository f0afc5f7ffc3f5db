#include "families/rank_sizes.h"

#include "model/packed_rows_facts.h"

namespace megalith {

int64_t SavedRows::row(int64_t width) const { return packs() ? packed_row_bytes(packing, width) : e * width; }

}  // namespace megalith
