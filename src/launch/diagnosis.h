// Who holds a run up: from what all ranks are in and whom they wait for.
#pragma once
#include <string>
#include <vector>

#include "launch/rank_view.h"

namespace megalith::launch {

struct Diagnosis {
  std::vector<int> ranks;  // the culprits; several where they wait for each other; empty: nobody stands out
  std::string reason;      // "rank 1 on host a is stopped (SIGSTOP), in backward of block 2; ..."
};

Diagnosis find_culprit(const std::vector<RankView>& ranks);

}  // namespace megalith::launch
