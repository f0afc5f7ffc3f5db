#include "train/agreement.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "memory/allocator.h"

namespace megalith {

void share_with_neighbours(World& world) {
  const auto ranks = std::ssize(world.neighbours());
  const SharedState state = ranks > 1 ? share_state(ranks) : SharedState{};
  world.share({state.fd, state.base, state.bytes});
}

void share(World& world, std::optional<Found>& checkpoint) {
  const std::string text =
      world.broadcast(checkpoint ? fmt::format("{} {}", checkpoint->step, checkpoint->dir.string()) : "", 0);
  checkpoint.reset();
  if (const size_t space = text.find(' '); space != std::string::npos)
    checkpoint = Found{std::stoll(text.substr(0, space)), text.substr(space + 1)};
}

void check_same_admissions(World& world, const std::string& admissions) {
  const std::vector<std::string> all = world.all_gather(admissions);
  for (size_t rank = 1; rank < all.size(); rank++)
    if (all[rank] != all[0])
      throw UserError({"", "curriculum", "the same difficulties on all ranks",
                       fmt::format("others on rank {} than on rank 0", rank),
                       "a metric's file or the data are not the same on its host: copy those of rank 0's"});
}

Seat seat_of(ProcessGroups* groups) {
  if (!groups) return {};
  return {.stage = groups->mesh().stage(),
          .host_ranks = static_cast<int32_t>(groups->world().neighbours().size()),
          .agree = [groups](Agreed& agreed) {
            static_assert(std::is_trivially_copyable_v<Agreed>);
            const std::string_view mine(reinterpret_cast<const char*>(&agreed), sizeof(agreed));
            const std::vector<std::string> all = groups->world().all_gather(mine);
            for (size_t rank = 0; rank < all.size(); rank++) {
              Agreed theirs;
              std::memcpy(&theirs, all[rank].data(), sizeof(theirs));
              if (rank == 0) agreed.speeds = theirs.speeds;
              agreed.process = std::max(agreed.process, theirs.process);
              agreed.budget = std::min(agreed.budget, theirs.budget);
            }
          }};
}

std::filesystem::path spill_folder(const Config& config, const ProcessGroups* groups) {
  if (!groups || config.memory.spill.empty()) return config.memory.spill;
  return std::filesystem::path(config.memory.spill) / fmt::format("rank-{}", groups->mesh().rank());
}

Observed::Observed(World* world, StatusObserver& observer) : world_(world) {
  if (world_) world_->observe(&observer);
}

Observed::~Observed() {
  if (world_) world_->observe(nullptr);
}

}  // namespace megalith
