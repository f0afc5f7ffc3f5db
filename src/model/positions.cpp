#include "model/positions.h"

namespace megalith {

std::vector<int64_t> positions_of(const Pass& pass) {
  if (!pass.positions_N.empty()) return pass.positions_N;
  std::vector<int64_t> positions(static_cast<size_t>(pass.tokens()));
  auto first_of = [&](int64_t b) { return pass.cache ? pass.cache->first_position(b) : 0; };
  const int64_t* begin = pass.document_begin_N.defined() ? pass.document_begin_N.const_data_ptr<int64_t>() : nullptr;
  for (int64_t n = 0; n < pass.tokens(); n++)
    positions[static_cast<size_t>(n)] = first_of(n / pass.length) + n % pass.length - (begin ? begin[n] : 0);
  return positions;
}

}  // namespace megalith
