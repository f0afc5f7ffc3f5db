// The axes along which work is divided over ranks.
#pragma once
#include <cstdint>

namespace megalith {

// The first kRankAxes axes arrange the ranks, from fastest to slowest in rank order. Ranks that exchange most often are
// neighbours, so that they are on one host. The expert axis lies inside the data axis: it has no ranks of its own.
enum class Axis : uint8_t { tensor, context, data, pipeline, expert };
inline constexpr int kRankAxes = 4, kAxes = 5;

const char* name_of(Axis axis);

}  // namespace megalith
