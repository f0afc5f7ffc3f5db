// Where the schedules of several ranks meet: ops of different ranks that begin and end together.
#pragma once
#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// A rank as the others see it. Ranks of one column are the stages of one pipeline; those of one stage in all columns hold
// the same blocks, or, where the inside of blocks is shared, the share of them that `share` numbers.
struct RankSchedule {
  const Schedule* schedule = nullptr;  // borrowed
  int32_t column = 0;
  int32_t share = 0;
  int32_t experts = 0;  // where experts are spread: ranks of one stage, share and number here have a layer's between them
};

// Ops that meet have equal ones: what it is, who takes part, and which of several in turn.
struct Meeting {
  OpKind kind = OpKind::total;  // of the sender for what is sent
  int32_t column = -1;          // of sends; -1: all columns
  int32_t stage = -1;           // of collectives of one stage; -1: all stages
  int32_t share = -1;           // of those among the ranks that hold the same share; -1: all shares
  int32_t experts = -1;         // of those among the ranks that have a layer's experts between them; -1: all of them
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  int32_t turn = 0;             // a rank may gather a block several times
  auto operator<=>(const Meeting&) const = default;
};

// Of every op of a rank's schedule; nothing for one that meets nobody.
std::vector<std::optional<Meeting>> meetings_of(const RankSchedule& rank);

}  // namespace megalith
