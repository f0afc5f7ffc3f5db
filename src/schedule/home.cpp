#include "schedule/home.h"

namespace megalith {

Home home_of(const RankLayout& layout, BlockId block, Placement placement) {
  const bool sliced = layout.sizes().slices();
  Home home;
  home.here = layout.stage(block) == layout.stage();
  home.placement = placement;
  home.sliced = sliced;
  const bool stays = home.here && placement != Placement::on_disk && !layout.device;
  home.parameters_stay = stays && !(sliced && layout.sizes().zero >= 3);
  home.gradient_stays = stays && !(sliced && layout.sizes().zero >= 2);
  return home;
}

std::vector<Home> homes(const RankLayout& layout, size_t blocks, const std::vector<Placement>& placement) {
  std::vector<Home> homes;
  for (size_t block = 0; block < blocks; block++)
    homes.push_back(home_of(layout, static_cast<BlockId>(block), placement.empty() ? Placement::in_memory : placement[block]));
  return homes;
}

}  // namespace megalith
