// All ranks in one table, for the log: who is where, in what, since when, waiting for whom.
#pragma once
#include <string>
#include <vector>

#include "launch/rank_view.h"

namespace megalith::launch {

std::string rank_table(const std::vector<RankView>& ranks);

}  // namespace megalith::launch
