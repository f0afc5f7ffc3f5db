#include "model/positions.h"

#include "layout/cuts.h"

namespace megalith {

std::vector<int64_t> positions_of_whole(const Pass& pass) {
  if (!pass.positions_N.empty()) return pass.positions_N;
  const int64_t tokens = pass.sequences * pass.length;
  std::vector<int64_t> positions(static_cast<size_t>(tokens));
  auto first_of = [&](int64_t b) { return pass.cache ? pass.cache->first_position(b) : 0; };
  const int64_t* begin = pass.document_begin_N.defined() ? pass.document_begin_N.const_data_ptr<int64_t>() : nullptr;
  for (int64_t n = 0; n < tokens; n++)
    positions[static_cast<size_t>(n)] = first_of(n / pass.length) + n % pass.length - (begin ? begin[n] : 0);
  return positions;
}

std::vector<int64_t> positions_of(const Pass& pass) {
  std::vector<int64_t> positions = positions_of_whole(pass);
  if (pass.runs.empty()) return positions;
  std::vector<int64_t> here;
  here.reserve(static_cast<size_t>(pass.tokens()));
  for (int64_t b = 0; b < pass.sequences; b++)
    for (const PositionRange& run : pass.runs) {
      const auto first = positions.begin() + b * pass.length;
      here.insert(here.end(), first + run.begin, first + run.end);
    }
  return here;
}

}  // namespace megalith
