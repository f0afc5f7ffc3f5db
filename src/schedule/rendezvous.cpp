#include "schedule/rendezvous.h"

#include <map>

#include "schedule/op_type.h"

namespace megalith {

std::vector<std::optional<Encounter>> encounters_of(const RankSchedule& rank) {
  std::vector<std::optional<Encounter>> encounters;
  encounters.reserve(rank.schedule->ops.size());
  std::map<Rendezvous, int32_t> occurrences;
  for (const Op& op : rank.schedule->ops) {
    encounters.push_back(type_of(op.kind).meets(rank, op));
    if (auto& encounter = encounters.back()) encounter->at.occurrence = occurrences[encounter->at]++;
  }
  return encounters;
}

}  // namespace megalith
