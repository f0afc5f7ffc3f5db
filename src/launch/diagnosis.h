// Finds the rank that blocks a run, from the ops that all ranks are in and the ranks they wait for.
#pragma once
#include <string>
#include <vector>

#include "launch/rank_view.h"

namespace megalith::launch {

struct Diagnosis {
  std::vector<int> ranks;  // the ranks at fault; several if they wait for each other; empty: no rank stands out
  std::string reason;      // "rank 1 on host a is stopped (SIGSTOP), in backward of block 2; ..."
};

Diagnosis find_culprit(const std::vector<RankView>& ranks);

}  // namespace megalith::launch
