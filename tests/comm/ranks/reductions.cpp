// Sums over ranks equal those of a plain loop in the order of the members, bit for bit. This holds for all sizes, kinds
// of memory, cuts and hosts.
#include "ranks/support.h"

#include "layout/cuts.h"

namespace megalith::testing_ranks {
namespace {

constexpr Element kSummable[] = {Element::float32, Element::float64, Element::bfloat16, Element::float16};
// Zero, one, odd counts, counts near the limits of small sums and windows, several rounds.
constexpr int64_t kCounts[] = {0, 1, 7, 1000, 4097, 300007};

std::vector<std::vector<int64_t>> cuts_of(int64_t count, int members) {
  std::vector<std::vector<int64_t>> ways{even_cuts(count, members)};
  std::vector<int64_t> uneven{0}, empty(static_cast<size_t>(members) + 1, 0);
  for (int m = 1; m < members; m++) uneven.push_back(count * m * m / (members * members));
  uneven.push_back(count);
  empty.back() = count;  // only the last member has elements
  ways.push_back(uneven);
  ways.push_back(empty);
  return ways;
}

TEST(AllReduce, IsTheSumInTheOrderOfTheMembers) {
  uint32_t seed = 1;
  for (Element element : kSummable) {
    for (int64_t count : kCounts) {
      const auto mine = drawn(world().rank(), count, element, ++seed);
      const auto expected = summed(everyone().members(), count, element, seed);
      for (Memory memory : kMemories) {
        Values values(memory, count, element);
        values.set(mine);
        everyone().all_reduce(values.buffer());
        ASSERT_EQ(values.bytes(), expected) << count << " elements of type " << static_cast<int>(element);
      }
    }
  }
}

// The oracle's sum equals the exact sum, except for rounding.
TEST(AllReduce, AgreesWithFloat64) {
  const int64_t count = 5000;
  Values values(Memory::shared, count, Element::float32);
  values.set(drawn(world().rank(), count, Element::float32, 7));
  everyone().all_reduce(values.buffer());
  const auto got = values.bytes();
  std::vector<double> expected(static_cast<size_t>(count), 0);
  for (int rank = 0; rank < world().size(); rank++) {
    const auto theirs = drawn(rank, count, Element::float32, 7);
    for (int64_t i = 0; i < count; i++) expected[static_cast<size_t>(i)] += as_double(theirs, i, Element::float32);
  }
  for (int64_t i = 0; i < count; i++) {
    ASSERT_NEAR(as_double(got, i, Element::float32), expected[static_cast<size_t>(i)], 1e-6 * world().size());
  }
}

TEST(ReduceScatter, SumsThisMembersSliceAndLeavesTheRest) {
  uint32_t seed = 100;
  const int members = everyone().size(), me = everyone().place();
  for (Element element : kSummable) {
    for (int64_t count : kCounts) {
      const auto mine = drawn(world().rank(), count, element, ++seed);
      const auto sums = summed(everyone().members(), count, element, seed);
      for (const std::vector<int64_t>& cuts : cuts_of(count, members)) {
        for (Memory memory : kMemories) {
          Values values(memory, count, element);
          values.set(mine);
          everyone().reduce_scatter(values.buffer(), cuts);
          auto expected = mine;
          const int64_t width = size_of(element);
          const auto begin = cuts[static_cast<size_t>(me)] * width, end = cuts[static_cast<size_t>(me) + 1] * width;
          std::copy(sums.begin() + begin, sums.begin() + end, expected.begin() + begin);
          ASSERT_EQ(values.bytes(), expected) << count << " elements of type " << static_cast<int>(element);
        }
      }
    }
  }
}

TEST(AllGather, GivesEverySliceToAll) {
  uint32_t seed = 200;
  const int members = everyone().size();
  for (Element element : {Element::byte, Element::float32, Element::bfloat16}) {
    for (int64_t count : kCounts) {
      seed++;
      for (const std::vector<int64_t>& cuts : cuts_of(count, members)) {
        std::vector<std::byte> expected;
        for (int p = 0; p < members; p++) {
          const auto theirs = drawn(everyone().members()[static_cast<size_t>(p)], count, element, seed);
          const int64_t width = size_of(element);
          expected.insert(expected.end(), theirs.begin() + cuts[static_cast<size_t>(p)] * width,
                          theirs.begin() + cuts[static_cast<size_t>(p) + 1] * width);
        }
        for (Memory memory : kMemories) {
          Values values(memory, count, element);
          values.set(drawn(world().rank(), count, element, seed));
          everyone().all_gather(values.buffer(), cuts);
          ASSERT_EQ(values.bytes(), expected) << count << " elements of type " << static_cast<int>(element);
        }
      }
    }
  }
}

// The order of members differs from that of ranks: the order of the members counts, and hosts alternate.
TEST(AllReduce, FollowsTheMembersNotTheRanks) {
  if (world().size() < 3) GTEST_SKIP() << "needs 3 ranks";
  std::vector<int> members;
  for (int rank = 0; rank < world().size(); rank += 2) members.push_back(rank);
  for (int rank = 1; rank < world().size(); rank += 2) members.insert(members.begin() + rank / 2, rank);
  Channel channel = world().channel(members, "shuffled");
  for (int64_t count : {3, 5000, 300007}) {
    const auto expected = summed(members, count, Element::float32, 9);
    for (Memory memory : kMemories) {
      Values values(memory, count, Element::float32);
      values.set(drawn(world().rank(), count, Element::float32, 9));
      channel.all_reduce(values.buffer());
      ASSERT_EQ(values.bytes(), expected);
      const std::vector<int64_t> cuts = even_cuts(count, channel.size());
      values.set(drawn(world().rank(), count, Element::float32, 9));
      channel.reduce_scatter(values.buffer(), cuts);
      channel.all_gather(values.buffer(), cuts);
      ASSERT_EQ(values.bytes(), expected);
    }
  }
}

// Sums are rounded between hosts, and equal on all ranks. Inside one host they are exact.
TEST(AllReduce, Bf16OnTheWire) {
  for (int64_t count : {100, 200003}) {
    const auto exact = summed(everyone().members(), count, Element::float32, 11);
    for (Memory memory : kMemories) {
      Values values(memory, count, Element::float32);
      values.set(drawn(world().rank(), count, Element::float32, 11));
      everyone().all_reduce(values.buffer(), Wire::bf16);
      const auto got = values.bytes();
      if (!everyone().spans_hosts()) {
        ASSERT_EQ(got, exact);
        continue;
      }
      bool rounded = false;
      for (int64_t i = 0; i < count; i++) {
        const double e = as_double(exact, i, Element::float32), g = as_double(got, i, Element::float32);
        // Every hop rounds a partial sum of at most `size` by 2^-9 of itself.
        ASSERT_NEAR(g, e, world().hosts() * world().size() / 256.0);
        rounded |= g != e;
      }
      ASSERT_TRUE(rounded);
      auto of_first = got;
      everyone().broadcast(Buffer(of_first.data(), std::ssize(of_first), Element::byte), 0);
      ASSERT_EQ(got, of_first);

      values.set(drawn(world().rank(), count, Element::float32, 11));
      const std::vector<int64_t> cuts = even_cuts(count, everyone().size());
      everyone().reduce_scatter(values.buffer(), cuts, Wire::bf16);
      const auto scattered = values.bytes();
      const size_t me = static_cast<size_t>(everyone().place());
      for (int64_t i = cuts[me]; i < cuts[me + 1]; i++) {
        ASSERT_NEAR(as_double(scattered, i, Element::float32), as_double(exact, i, Element::float32),
                    world().hosts() * world().size() / 256.0);
      }
    }
  }
}

}  // namespace
}  // namespace megalith::testing_ranks
