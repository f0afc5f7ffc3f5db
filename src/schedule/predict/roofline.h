// Says what bounds a step: the least time that its useful work needs of each resource.
#pragma once
#include <array>

#include "schedule/predict/costs.h"
#include "schedule/schedule.h"

namespace megalith {

// Returns the seconds that a training step would need of each resource if the others were unlimited. Uses the measured
// speeds of the machine. Useful work is the work of a step that keeps all state in memory and recomputes nothing.
//   cores   its matrix products
//   memory  its passes over memory, without the matrix products
//   disk    the state that blocks on disk must move; 0 for blocks in memory
//   network what it exchanges with other ranks
// A step that takes `seconds` reaches useful_seconds / seconds of the limit. The longest time bounds the step.
std::array<double, kResources> useful_seconds(const Schedule& step, const MachineSpeeds& speeds);

// The resource with the longest time.
Resource binding(const std::array<double, kResources>& useful);

// The bytes that each lane moves over the spill disk in a step.
std::array<Traffic, kLanes> traffic_by_lane(const Schedule& step);

}  // namespace megalith
