#include "train/rank_setup.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "engine/link_trial.h"
#include "launch/environment.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

void share_memory_on_host(World& world) {
  const auto ranks = std::ssize(world.neighbours());
  const SharedState state = ranks > 1 ? share_state(ranks) : SharedState{};
  world.share_memory({state.fd, state.base, state.bytes});
}

void agree_on_all(World& world, Agreed& agreed) {
  static_assert(std::is_trivially_copyable_v<Agreed>);
  const std::string_view mine(reinterpret_cast<const char*>(&agreed), sizeof(agreed));
  const std::vector<std::string> all = world.all_gather(mine);
  for (size_t rank = 0; rank < all.size(); rank++) {
    Agreed theirs;
    std::memcpy(&theirs, all[rank].data(), sizeof(theirs));
    if (rank == 0) agreed.speeds = theirs.speeds;
    agreed.process = std::max(agreed.process, theirs.process);
    agreed.budget = std::min(agreed.budget, theirs.budget);
  }
}

}  // namespace

RankSetup::RankSetup(World* world, const Layout& layout) : world_(world) {
  if (!world_) return;
  share_memory_on_host(*world_);
  groups_.emplace(*world_, layout);
}

void RankSetup::leader_first(const std::function<void()>& work, const std::function<void(RemoteHosts&)>& bring) {
  if (leads()) work();
  if (world_) world_->barrier();
  const bool second = remote_ && remote_->is_remote() && remote_->leads_host();
  if (remote_) bring(*remote_);
  if (second) work();
  if (remote_) world_->barrier();
  if (!leads() && !second) work();
}

std::optional<Found> RankSetup::broadcast_checkpoint(const std::optional<Found>& found) {
  if (!world_) return found;
  const std::string text = world_->broadcast(found ? fmt::format("{} {}", found->step, found->dir.string()) : "", 0);
  const size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return Found{std::stoll(text.substr(0, space)), text.substr(space + 1)};
}

void RankSetup::find_remote_hosts(const std::filesystem::path& run_dir) {
  if (!world_ || world_->hosts() == 1) return;
  remote_.emplace(*world_, run_dir);
  if (!remote_->any()) remote_.reset();
}

void RankSetup::check_same_admissions(const std::string& admissions) {
  if (!world_) return;
  const std::vector<std::string> all = world_->all_gather(admissions);
  for (size_t rank = 1; rank < all.size(); rank++)
    if (all[rank] != all[0])
      throw UserError({"", "curriculum", "the same difficulties on all ranks",
                       fmt::format("different ones on rank {} and rank 0", rank),
                       fmt::format("copy the metric files and the data from the host of rank 0 to that of rank {}", rank)});
}

PlanPeers RankSetup::peers() {
  if (!world_) return {};
  World& world = *world_;
  PlanPeers peers{.leads_host = world.neighbours().front() == world.rank()};
  for (int rank = 0; rank < world.size(); rank++) peers.host_of.push_back(world.host_of(rank));
  if (world.hosts() > 1) {
    const std::vector<std::string> names = world.all_gather(launch::host_name());
    for (int rank = 0; rank < world.size(); rank++)
      peers.hosts += fmt::format("{}{}:{}", rank > 0 ? " " : "", world.host_of(rank), names[static_cast<size_t>(rank)]);
  }
  peers.agree = [&world](Agreed& agreed) { agree_on_all(world, agreed); };
  peers.try_links = [this] { return try_links(*groups_); };
  return peers;
}

std::filesystem::path RankSetup::spill_folder(const std::string& spill) const {
  if (!groups_ || spill.empty()) return spill;
  return std::filesystem::path(spill) / fmt::format("rank-{}", groups_->mesh().rank());
}

Observed::Observed(World* world, StatusObserver& observer) : world_(world) {
  if (world_) world_->observe(&observer);
}

Observed::~Observed() {
  if (world_) world_->observe(nullptr);
}

}  // namespace megalith
