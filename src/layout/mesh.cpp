#include "layout/mesh.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

Mesh::Mesh(Layout layout, int rank) : layout_(layout), rank_(rank) {
  MEGALITH_ASSERT(rank >= 0 && rank < layout.ranks(), "rank {} of {}", rank, layout.ranks());
  MEGALITH_ASSERT(layout.expert >= 1 && layout.data % layout.expert == 0, "experts over {} of {} data ranks",
                  layout.expert, layout.data);
  for (int axis = 0, rest = rank; axis < kRankAxes; axis++) {
    const int along = layout.along(static_cast<Axis>(axis));
    coordinates_[static_cast<size_t>(axis)] = rest % along;
    rest /= along;
  }
  coordinates_[static_cast<size_t>(Axis::expert)] = coordinate(Axis::data) % layout.expert;
}

Mesh Mesh::of_stage(Layout layout, int stage) {
  return Mesh(layout, stage * layout.data * layout.context * layout.tensor);  // the pipeline is the slowest axis
}

int32_t Mesh::replica() const {
  return static_cast<int32_t>(coordinate(Axis::data) * layout_.context + coordinate(Axis::context));
}

int32_t Mesh::expert_replica() const {
  return static_cast<int32_t>(coordinate(Axis::data) / layout_.expert * layout_.context + coordinate(Axis::context));
}

std::vector<int> Mesh::peers(std::initializer_list<Axis> axes) const {
  const auto varies = [&](Axis axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  std::vector<int> ranks;
  for (int other = 0; other < layout_.ranks(); other++) {
    const Mesh there(layout_, other);
    bool same = true;
    for (int axis = 0; axis < kRankAxes; axis++) {
      const Axis a = static_cast<Axis>(axis);
      const bool expert_neighbour = a == Axis::data && varies(Axis::expert) &&
                                    there.coordinate(a) / layout_.expert == coordinate(a) / layout_.expert;
      same &= there.coordinate(a) == coordinate(a) || varies(a) || expert_neighbour;
    }
    if (same) ranks.push_back(other);
  }
  return ranks;
}

int Mesh::peer(Axis axis, int64_t coordinate) const { return peers(axis).at(static_cast<size_t>(coordinate)); }

std::vector<int> Mesh::expert_replicas() const {
  std::vector<int> ranks = peers({Axis::data, Axis::context});
  std::erase_if(ranks, [&](int rank) {
    return Mesh(layout_, rank).coordinate(Axis::expert) != coordinate(Axis::expert);
  });
  return ranks;
}

}  // namespace megalith
