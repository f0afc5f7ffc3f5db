// Describes where the schedules of several ranks meet: ops of different ranks that begin and end together.
#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// A rank as the other ranks see it. The ranks of one column are the stages of one pipeline. The ranks of one stage in all
// columns hold the same blocks. With tensor parallelism, each of them holds part number `tensor_rank` of the blocks.
struct RankSchedule {
  const Schedule* schedule = nullptr;  // borrowed
  int32_t column = 0;
  int32_t tensor_rank = 0;
  int32_t experts = 0;  // ranks with equal stage, tensor_rank and `experts` together hold the experts of a layer
  int32_t host = 0;     // ranks of one host share its memory and disk
  int32_t copies = 1;   // number of ranks of the host that do the same at the same time; this one represents them
};

// Identifies one exchange: its kind, the ranks that take part, and its number among equal ones. Ops that meet have equal
// values.
struct Rendezvous {
  OpKind kind{};              // if one rank sends and one receives: the sender's
  int32_t column = -1;        // ranks of this column take part; -1: of all columns
  int32_t stage = -1;         // ranks of this stage take part; -1: of all stages
  int32_t tensor_rank = -1;   // ranks with this tensor rank take part; -1: with any
  int32_t experts = -1;       // ranks with this RankSchedule::experts take part; -1: with any
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  int32_t occurrence = 0;     // a rank may gather a block several times
  bool pair = false;          // two ranks take part; else all ranks that the fields above select
  auto operator<=>(const Rendezvous&) const = default;
};

// The channel that carries an exchange. Exchanges over one route differ only by their order.
struct Route {
  OpKind kind{};
  int32_t column = -1, stage = -1, from = -1, to = -1;
  auto operator<=>(const Route&) const = default;
};

// How an op meets other ranks.
struct Encounter {
  Rendezvous at;
  std::vector<Route> routes;
};

// Returns the encounter of every op of a rank's schedule. It is empty for an op that meets no other rank.
std::vector<std::optional<Encounter>> encounters_of(const RankSchedule& rank);

}  // namespace megalith
