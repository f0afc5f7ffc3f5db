// A slow machine with round speeds, on which steps use every resource.
#pragma once
#include "schedule/predict/costs.h"

namespace megalith {

inline constexpr MachineSpeeds kToySpeeds{.flops = 1e9,
                                          .memory_bandwidth = 1e8,
                                          .disk_read = 1e7,
                                          .disk_write = 1e7,
                                          .spill_read = 2e7,
                                          .spill_write = 1e7,
                                          .spill_mixed = 2e7,
                                          .spill_core_s = 1e-9,
                                          .device_bandwidth = 5e7,
                                          .op_overhead_s = 1e-5,
                                          .cores = 2,
                                          .links = on_every_axis({1e-4, 2e7})};

}  // namespace megalith
