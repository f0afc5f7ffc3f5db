#include "layout/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace megalith {
namespace {

using Ranks = std::vector<int>;

TEST(Mesh, TensorIsFastestAndPipelineSlowest) {
  const Layout layout{.data = 2, .pipeline = 2, .context = 1, .tensor = 2};
  const Mesh mesh(layout, 5);  // 5 = 1 + 2 · (0 + 2 · 1)
  EXPECT_EQ(mesh.coordinate(Axis::tensor), 1);
  EXPECT_EQ(mesh.coordinate(Axis::data), 0);
  EXPECT_EQ(mesh.coordinate(Axis::pipeline), 1);
  EXPECT_EQ(mesh.peers(Axis::tensor), (Ranks{4, 5}));
  EXPECT_EQ(mesh.peers(Axis::data), (Ranks{5, 7}));
  EXPECT_EQ(mesh.peers(Axis::pipeline), (Ranks{1, 5}));
  EXPECT_EQ(mesh.peers({Axis::data, Axis::tensor}), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(mesh.peer(Axis::pipeline, 0), 1);
  EXPECT_TRUE(mesh.last(Axis::pipeline));
  EXPECT_TRUE(mesh.first(Axis::data));
}

// Whatever the layout: the groups of an axis cut the ranks into rows of the axis's length, and all members of a row
// name the same row.
TEST(Mesh, GroupsPartitionTheRanks) {
  for (const Layout& layout : layouts_of(24)) {
    for (int axis = 0; axis < kRankAxes; axis++) {
      const Axis a = static_cast<Axis>(axis);
      std::set<Ranks> rows;
      for (int rank = 0; rank < 24; rank++) {
        const Mesh mesh(layout, rank);
        const Ranks row = mesh.peers(a);
        ASSERT_EQ(static_cast<int>(row.size()), layout.along(a));
        ASSERT_TRUE(std::is_sorted(row.begin(), row.end()));
        ASSERT_EQ(row.at(static_cast<size_t>(mesh.coordinate(a))), rank);
        rows.insert(row);
      }
      Ranks all;
      for (const Ranks& row : rows) all.insert(all.end(), row.begin(), row.end());
      std::sort(all.begin(), all.end());
      for (int rank = 0; rank < 24; rank++) ASSERT_EQ(all.at(static_cast<size_t>(rank)), rank);
      ASSERT_EQ(all.size(), 24u);
    }
  }
}

TEST(Mesh, EveryLayoutOfANumberOfRanksIsListedOnce) {
  for (int ranks : {1, 2, 6, 8, 12}) {
    std::set<std::array<int, 4>> expected, listed;
    for (int d = 1; d <= ranks; d++)
      for (int p = 1; p <= ranks; p++)
        for (int c = 1; c <= ranks; c++)
          for (int t = 1; t <= ranks; t++)
            if (d * p * c * t == ranks) expected.insert({d, p, c, t});
    const std::vector<Layout> layouts = layouts_of(ranks);
    for (const Layout& l : layouts) {
      listed.insert({l.data, l.pipeline, l.context, l.tensor});
      EXPECT_EQ(l.ranks(), ranks);
    }
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(layouts.size(), expected.size());
    EXPECT_EQ(layouts.front().data, ranks);
  }
}

TEST(Mesh, ExpertsLieInsideTheDataAxis) {
  const Layout layout{.data = 4, .pipeline = 1, .context = 1, .tensor = 2, .expert = 2};
  EXPECT_EQ(Mesh(layout, 1).peers(Axis::expert), (Ranks{1, 3}));
  EXPECT_EQ(Mesh(layout, 4).peers(Axis::expert), (Ranks{4, 6}));
  EXPECT_EQ(Mesh(layout, 4).coordinate(Axis::expert), 0);
  EXPECT_EQ(Mesh(layout, 7).coordinate(Axis::expert), 1);
  EXPECT_EQ(Mesh(layout, 3).expert_replicas(), (Ranks{3, 7}));
  // Ranks of the context axis have the same experts.
  const Layout with_context{.data = 4, .context = 2, .expert = 2};
  EXPECT_EQ(Mesh(with_context, 2).peers(Axis::expert), (Ranks{0, 2}));
  EXPECT_EQ(Mesh(with_context, 2).expert_replicas(), (Ranks{2, 3, 6, 7}));
  EXPECT_THROW(Mesh({.data = 3, .expert = 2}, 0), Bug);
}

TEST(Mesh, ShowsWhatIsNotOne) {
  EXPECT_EQ(show(Layout{.data = 2, .tensor = 4}), "data 2 × tensor 4");
  EXPECT_EQ(show(Layout{.data = 4, .pipeline = 2, .expert = 2}), "data 4 × pipeline 2, experts over 2");
  EXPECT_EQ(show(Layout{}), "1 rank");
}

}  // namespace
}  // namespace megalith
