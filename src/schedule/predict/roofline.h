// What bounds a step: the least time that its useful work takes of each resource.
#pragma once
#include <array>

#include "schedule/predict/costs.h"
#include "schedule/schedule.h"

namespace megalith {

// Seconds, by resource, of a training step as if the others were endless, at the speeds that the machine was measured
// to reach. Useful is what the step would do with all of its state in memory and everything kept: recomputation is not.
//   cores   its matrix products
//   memory  its passes over memory besides them
//   disk    what the blocks on disk must move; 0 for those in memory
//   network what it exchanges with other ranks
// A step of `seconds` reaches useful_seconds / seconds of the limit; the longest bounds it.
std::array<double, kResources> useful_seconds(const Schedule& step, const MachineSpeeds& speeds);

// The resource with the longest.
Resource binding(const std::array<double, kResources>& useful);

// What each lane moves over the spill disk in a step.
std::array<Traffic, kLanes> traffic_by_lane(const Schedule& step);

}  // namespace megalith
