// The setup that the ranks of a run do together before the first step.
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

// One rank and the ranks that it runs with. All ranks construct this object and call its functions at the same time.
class RankSetup {
 public:
  // Borrows `world`, which has as many ranks as the layout; null: this process is alone. From then on, parameters and
  // gradients are allocated in memory that all ranks of this host can reach.
  RankSetup(World* world, const Layout& layout);

  ProcessGroups* groups() { return groups_ ? &*groups_ : nullptr; }  // null: alone
  RemoteHosts* remote() { return remote_ ? &*remote_ : nullptr; }  // null: all hosts see the run directory
  bool leads() const { return !groups_ || groups_->first(); }
  Mesh mesh() const { return groups_ ? groups_->mesh() : Mesh(); }
  int32_t host_ranks() const { return world_ ? static_cast<int32_t>(world_->neighbours().size()) : 1; }

  // Does work that creates files: rank 0 first, then the other ranks, which find the files. `bring` copies the files to
  // hosts that do not see them, before those hosts do the work.
  void leader_first(const std::function<void()>& work, const std::function<void(RemoteHosts&)>& bring = [](RemoteHosts&) {});

  // Returns on all ranks the checkpoint that rank 0 has found and verified.
  std::optional<Found> broadcast_checkpoint(const std::optional<Found>& found);
  // Finds out which hosts do not see the run directory, which is on rank 0's host.
  void find_remote_hosts(const std::filesystem::path& run_dir);
  // Throws UserError on all ranks if a rank would draw other samples than rank 0. `admissions`: those of Dataset, as JSON.
  void check_same_admissions(const std::string& admissions);
  // Makes all ranks plan with rank 0's speeds, the smallest budget and the largest process.
  PlanPeers peers();
  // Returns the folder for this rank's files within memory.spill.
  std::filesystem::path spill_folder(const std::string& spill) const;

 private:
  World* world_;
  std::optional<ProcessGroups> groups_;
  std::optional<RemoteHosts> remote_;
};

// Makes a world report its waits to an observer while this object exists.
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
