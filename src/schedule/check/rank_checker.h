// Proves that the schedules of all ranks fit together, or says what is wrong.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/check/checker.h"
#include "schedule/rendezvous.h"

namespace megalith {

// Returns the problems between ranks. Each schedule alone must be right (checker.h). A problem is an exchange that a rank
// misses or reaches out of order, or ops of several ranks that wait in a cycle. Ops that meet begin and end together, so
// the result holds for any speed of any rank. Problem::op is kNoOp; the reason names ranks and ops.
std::vector<Problem> check_ranks(std::span<const RankSchedule> ranks);

}  // namespace megalith
