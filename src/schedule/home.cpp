#include "schedule/home.h"

namespace megalith {

Home home_of(const Division& division, BlockId block, Placement placement, BlockId borrowed_table) {
  const bool sliced = division.sharding.slices();
  Home home;
  home.here = division.stage(block) == division.stages.here;
  home.borrowed = block == borrowed_table;
  home.on_device = division.device;
  home.placement = placement;
  home.sliced = sliced;
  const bool stays = home.here && placement != Placement::on_disk && !division.device;
  home.parameters_stay = stays && !(sliced && division.sharding.zero >= 3);
  home.gradient_stays = stays && !(sliced && division.sharding.zero >= 2);
  home.separate_master = sliced || division.device;
  home.separate_gradient = division.reduces() || division.device;
  return home;
}

std::vector<Home> homes(const Division& division, size_t blocks, const std::vector<Placement>& placement,
                        BlockId tied_table) {
  const auto head = static_cast<BlockId>(blocks) - 1;
  const bool remote = tied_table != kNoBlock && division.stage(tied_table) != division.stage(head);
  const BlockId borrowed = remote && division.stage(head) == division.stages.here ? tied_table : kNoBlock;
  std::vector<Home> homes;
  for (BlockId block = 0; block <= head; block++)
    homes.push_back(home_of(division, block, placement.empty() ? Placement::in_memory : placement[static_cast<size_t>(block)],
                            borrowed));
  return homes;
}

}  // namespace megalith
