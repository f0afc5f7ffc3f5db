// All ranks in one table, for the log: host, state, op, how long it has been in the op, and the ranks it waits for.
#pragma once
#include <string>
#include <vector>

#include "launch/rank_view.h"

namespace megalith::launch {

std::string rank_table(const std::vector<RankView>& ranks);

}  // namespace megalith::launch
