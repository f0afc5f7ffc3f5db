// Where the schedules of several ranks meet: ops of different ranks that begin and end together.
#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// A rank as the others see it. The ranks of one column are the stages of one pipeline. The ranks of one stage in all columns
// hold the same blocks or, with tensor parallelism, the part of them that `tensor_rank` numbers.
struct RankSchedule {
  const Schedule* schedule = nullptr;  // borrowed
  int32_t column = 0;
  int32_t tensor_rank = 0;
  int32_t experts = 0;  // ranks with equal stage, tensor_rank and `experts` hold the experts of a layer between them
  int32_t host = 0;     // ranks of one host share its memory and disk
  int32_t copies = 1;   // ranks of that host that do the same at the same time; one stands for all of them
};

// Ops that meet have equal ones: what it is, who takes part, and which of several.
struct Rendezvous {
  OpKind kind{};              // of the sender, if one sends and one receives
  int32_t column = -1;        // the ranks of this column; -1: of all columns
  int32_t stage = -1;         // the ranks of this stage; -1: of all stages
  int32_t tensor_rank = -1;   // the ranks with this tensor rank; -1: with any
  int32_t experts = -1;       // the ranks that hold the experts of a layer between them; -1: any
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  int32_t occurrence = 0;     // a rank may gather a block several times
  bool pair = false;          // of two ranks; else of all that the fields above select
  auto operator<=>(const Rendezvous&) const = default;
};

// What carries an exchange. Exchanges over one route are told apart by their order alone.
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

// For every op of a rank's schedule; nothing for an op that meets no other rank.
std::vector<std::optional<Encounter>> encounters_of(const RankSchedule& rank);

}  // namespace megalith
