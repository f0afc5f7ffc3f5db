// Which ranks a simulation has to look at: many do the same at the same time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

// A column is one rank of every stage of the pipeline. This one stands for `copies` columns whose ranks are on the same hosts.
struct RankColumn {
  std::vector<int32_t> host;  // by stage
  int32_t copies = 1;
  bool operator==(const RankColumn&) const = default;
};

// `host_of`: by rank; empty: all ranks are on host 0. Of columns that have their hosts for themselves and are alike, one is
// enough.
std::vector<RankColumn> columns_of(int32_t ranks, int32_t stages, std::span<const int32_t> host_of);

}  // namespace megalith
