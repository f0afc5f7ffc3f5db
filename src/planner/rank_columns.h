// Selects the ranks that a simulation must include. Many ranks do the same at the same time, so one of them is enough.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

// A column is one rank of every pipeline stage. This object represents `copies` columns whose ranks are on the same hosts.
struct RankColumn {
  std::vector<int32_t> host;  // by stage
  int32_t copies = 1;
  bool operator==(const RankColumn&) const = default;
};

// `host_of`: by rank; empty: all ranks are on host 0. If no two columns share a host, columns that differ only in host
// numbers count as equal. Then only one of them is returned.
std::vector<RankColumn> columns_of(int32_t ranks, int32_t stages, std::span<const int32_t> host_of);

}  // namespace megalith
