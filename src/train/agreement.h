// What the ranks of a run settle with each other before its first step.
#pragma once
#include <filesystem>
#include <optional>

#include "checkpoint/store.h"
#include "config/config.h"
#include "train/status_observer.h"
#include "engine/process_groups.h"
#include "planner/plan.h"

namespace megalith {

// Parameters and gradients lie where the ranks of this host can reach them, so that nothing is copied to be exchanged.
void share_with_neighbours(World& world);

// The checkpoint that rank 0 has found and verified, for all.
void share(World& world, std::optional<Found>& checkpoint);

// UserError on all ranks where one would draw other samples than rank 0: `admissions` is Dataset's.
void check_same_admissions(World& world, const std::string& admissions);

// All ranks plan with rank 0's speeds, the smallest budget and the largest process. `groups` is borrowed; none: alone.
Seat seat_of(ProcessGroups* groups);

// A folder holds one rank's files.
std::filesystem::path spill_folder(const Config& config, const ProcessGroups* groups);

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
