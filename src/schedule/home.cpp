#include "schedule/home.h"

namespace megalith {

Home home_of(const RankLayout& layout, BlockId block, Placement placement, BlockId borrowed_table) {
  const bool sliced = layout.sizes().slices();
  Home home;
  home.here = layout.stage(block) == layout.stage();
  home.borrowed = block == borrowed_table;
  home.on_device = layout.device;
  home.placement = placement;
  home.sliced = sliced;
  const bool stays = home.here && placement != Placement::on_disk && !layout.device;
  home.parameters_stay = stays && !(sliced && layout.sizes().zero >= 3);
  home.gradient_stays = stays && !(sliced && layout.sizes().zero >= 2);
  home.separate_master = sliced || layout.device;
  home.separate_gradient = layout.sizes().reduces() || layout.device;
  return home;
}

std::vector<Home> homes(const RankLayout& layout, size_t blocks, const std::vector<Placement>& placement,
                        BlockId tied_table) {
  const auto head = static_cast<BlockId>(blocks) - 1;
  const bool remote = tied_table != kNoBlock && layout.stage(tied_table) != layout.stage(head);
  const BlockId borrowed = remote && layout.stage(head) == layout.stage() ? tied_table : kNoBlock;
  std::vector<Home> homes;
  for (BlockId block = 0; block <= head; block++)
    homes.push_back(home_of(layout, block, placement.empty() ? Placement::in_memory : placement[static_cast<size_t>(block)],
                            borrowed));
  return homes;
}

}  // namespace megalith
