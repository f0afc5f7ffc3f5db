// The ranks arranged on the axes of a layout, as one rank sees them. Pure arithmetic: every rank can compute every group
// without communication.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "layout/layout.h"

namespace megalith {

class Mesh {
 public:
  Mesh() : Mesh(Layout{}) {}  // one rank
  // `rank` in [0, layout.ranks()).
  explicit Mesh(Layout layout, int rank = 0);
  // The mesh seen from the first rank of a pipeline stage, which has coordinate 0 on all other axes.
  static Mesh of_stage(Layout layout, int stage);

  const Layout& layout() const { return layout_; }
  int rank() const { return rank_; }
  int64_t size(Axis axis) const { return layout_.along(axis); }
  int64_t coordinate(Axis axis) const { return coordinates_[static_cast<size_t>(axis)]; }
  bool first(Axis axis) const { return coordinate(axis) == 0; }
  bool last(Axis axis) const { return coordinate(axis) == size(axis) - 1; }
  int32_t stage() const { return static_cast<int32_t>(coordinate(Axis::pipeline)); }
  // The index of this rank among the replicas, and among the replicas that hold the same experts.
  int32_t replica() const;
  int32_t expert_replica() const;
  // True if a rank holds only some rows of its sequences.
  bool divides_rows() const { return layout_.tensor > 1 || layout_.context > 1; }

  // The ranks that differ from this rank on these axes only, in ascending order. Includes this rank.
  std::vector<int> peers(std::initializer_list<Axis> axes) const;
  std::vector<int> peers(Axis axis) const { return peers({axis}); }
  // The rank that has `coordinate` on the axis and this rank's coordinates on all others.
  int peer(Axis axis, int64_t coordinate) const;
  // The replicas that hold the same experts as this rank, in ascending order. Includes this rank.
  std::vector<int> expert_replicas() const;

  bool operator==(const Mesh&) const = default;

 private:
  Layout layout_;
  int rank_;
  std::array<int64_t, kAxes> coordinates_{};
};

}  // namespace megalith
