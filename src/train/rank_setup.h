// What the ranks of a run do together before its first step.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>

#include "checkpoint/store.h"
#include "engine/process_groups.h"
#include "planner/plan.h"
#include "train/remote_hosts.h"
#include "train/status_observer.h"

namespace megalith {

// One rank and those that it runs with. All ranks construct theirs and call its functions at the same time.
class RankSetup {
 public:
  // Borrows `world`, whose size is the layout's; null: this process is alone. Parameters and gradients are placed where the
  // ranks of this host can reach them.
  RankSetup(World* world, const Layout& layout);

  ProcessGroups* groups() { return groups_ ? &*groups_ : nullptr; }  // null: alone
  RemoteHosts* remote() { return remote_ ? &*remote_ : nullptr; }  // null: all hosts see the run directory
  bool leads() const { return !groups_ || groups_->first(); }
  Mesh mesh() const { return groups_ ? groups_->mesh() : Mesh(); }
  int32_t host_ranks() const { return world_ ? static_cast<int32_t>(world_->neighbours().size()) : 1; }

  // Work that leaves files behind: rank 0 does it first, the others find the files. `bring` gets the files to hosts that do
  // not see them, before those do the work.
  void leader_first(const std::function<void()>& work, const std::function<void(RemoteHosts&)>& bring = [](RemoteHosts&) {});

  // The checkpoint that rank 0 has found and verified, for all.
  std::optional<Found> broadcast_checkpoint(const std::optional<Found>& found);
  // Finds out which hosts do not see the run directory, which is on rank 0's host.
  void find_remote_hosts(const std::filesystem::path& run_dir);
  // UserError on all ranks if one would draw other samples than rank 0: `admissions` is Dataset's.
  void check_same_admissions(const std::string& admissions);
  // All ranks plan with rank 0's speeds, the smallest budget and the largest process.
  PlanPeers peers();
  // Of memory.spill: a folder holds the files of one rank.
  std::filesystem::path spill_folder(const std::string& spill) const;

 private:
  World* world_;
  std::optional<ProcessGroups> groups_;
  std::optional<RemoteHosts> remote_;
};

// A world that tells its waits as long as this exists.
class Observed {
 public:
  Observed(World* world, StatusObserver& observer);
  ~Observed();
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  World* world_;
};

}  // namespace megalith
