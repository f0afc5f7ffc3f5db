// The ranks arranged on the axes of a layout. Pure arithmetic: every rank works out every group by itself.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "layout/axis.h"

namespace megalith {

struct Layout {
  int32_t data = 1;
  int32_t pipeline = 1;
  int32_t context = 1;
  int32_t tensor = 1;
  int32_t expert = 1;  // a divisor of data: experts are spread over each run of as many neighbours on it

  int32_t ranks() const { return data * pipeline * context * tensor; }
  int32_t along(Axis axis) const;
  bool operator==(const Layout&) const = default;
};

// "data 4 × pipeline 2, experts over 2", axes of one left out; "1 rank" when all are.
std::string show(const Layout& layout);

// Every layout of exactly `ranks` ranks (expert 1), those with the longest data axis first.
std::vector<Layout> layouts_of(int32_t ranks);

class Mesh {
 public:
  // `rank` in [0, layout.ranks()).
  Mesh(Layout layout, int rank);

  const Layout& layout() const { return layout_; }
  int rank() const { return rank_; }
  int size(Axis axis) const { return layout_.along(axis); }
  int place(Axis axis) const { return place_[static_cast<size_t>(axis)]; }
  bool first(Axis axis) const { return place(axis) == 0; }
  bool last(Axis axis) const { return place(axis) == size(axis) - 1; }

  // The ranks that differ from this one on these axes only, ascending, this one among them.
  std::vector<int> peers(std::initializer_list<Axis> axes) const;
  std::vector<int> peers(Axis axis) const { return peers({axis}); }
  // The rank `place` of this one's row along the axis.
  int peer(Axis axis, int place) const;
  // The ranks among which experts are spread, this one among them, and which of them it is.
  std::vector<int> expert_peers() const;
  int expert_place() const { return place(Axis::data) % layout_.expert; }
  // Of the peers along the data and context axes, those with the same experts.
  std::vector<int> expert_replicas() const;

 private:
  Layout layout_;
  int rank_;
  std::array<int, kRankAxes> place_{};
};

}  // namespace megalith
