// The schedules of all ranks, run abstractly side by side: do they meet?
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/check/checker.h"
#include "schedule/rendezvous.h"

namespace megalith {

// What is wrong between ranks, given that each schedule alone is right (checker.h): an exchange that some rank does not
// take part in, or takes part in out of turn, and ops that wait for each other in a cycle. Ops that meet begin and end
// together, so what this finds holds for any speed of any rank. Problem::op is kNoOp; the reason names ranks and ops.
std::vector<Problem> check_ranks(std::span<const RankSchedule> ranks);

}  // namespace megalith
