#include "layout/mesh.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::tensor: return "tensor";
    case Axis::context: return "context";
    case Axis::data: return "data";
    case Axis::pipeline: return "pipeline";
    case Axis::expert: return "expert";
  }
  return "";
}

int32_t Layout::along(Axis axis) const {
  switch (axis) {
    case Axis::tensor: return tensor;
    case Axis::context: return context;
    case Axis::data: return data;
    case Axis::pipeline: return pipeline;
    case Axis::expert: return expert;
  }
  return 1;
}

std::string show(const Layout& layout) {
  std::string text;
  for (Axis axis : {Axis::data, Axis::pipeline, Axis::context, Axis::tensor}) {
    if (layout.along(axis) == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", name_of(axis), layout.along(axis));
  }
  if (layout.expert > 1) text += fmt::format(", experts over {}", layout.expert);
  return text.empty() ? "1 rank" : text;
}

std::vector<Layout> layouts_of(int32_t ranks) {
  std::vector<Layout> layouts;
  for (int32_t data = ranks; data >= 1; data--) {
    if (ranks % data != 0) continue;
    const int32_t without_data = ranks / data;
    for (int32_t pipeline = 1; pipeline <= without_data; pipeline++) {
      if (without_data % pipeline != 0) continue;
      const int32_t inner = without_data / pipeline;
      for (int32_t context = 1; context <= inner; context++) {
        if (inner % context == 0) layouts.push_back({data, pipeline, context, inner / context});
      }
    }
  }
  return layouts;
}

Mesh::Mesh(Layout layout, int rank) : layout_(layout), rank_(rank) {
  MEGALITH_ASSERT(rank >= 0 && rank < layout.ranks(), "rank {} of {}", rank, layout.ranks());
  MEGALITH_ASSERT(layout.expert >= 1 && layout.data % layout.expert == 0, "experts over {} of {} data ranks",
                  layout.expert, layout.data);
  for (int axis = 0, rest = rank; axis < kRankAxes; axis++) {
    const int along = layout.along(static_cast<Axis>(axis));
    place_[static_cast<size_t>(axis)] = rest % along;
    rest /= along;
  }
}

std::vector<int> Mesh::peers(std::initializer_list<Axis> axes) const {
  std::vector<int> ranks;
  for (int other = 0; other < layout_.ranks(); other++) {
    const Mesh there(layout_, other);
    bool same = true;
    for (int axis = 0; axis < kRankAxes; axis++) {
      const Axis a = static_cast<Axis>(axis);
      same &= there.place(a) == place(a) || std::find(axes.begin(), axes.end(), a) != axes.end();
    }
    if (same) ranks.push_back(other);
  }
  return ranks;
}

int Mesh::peer(Axis axis, int place) const { return peers(axis).at(static_cast<size_t>(place)); }

std::vector<int> Mesh::expert_peers() const {
  const std::vector<int> row = peers(Axis::data);
  const auto first = row.begin() + place(Axis::data) / layout_.expert * layout_.expert;
  return {first, first + layout_.expert};
}

std::vector<int> Mesh::expert_replicas() const {
  std::vector<int> ranks = peers({Axis::data, Axis::context});
  std::erase_if(ranks, [&](int rank) { return Mesh(layout_, rank).expert_place() != expert_place(); });
  return ranks;
}

}  // namespace megalith
