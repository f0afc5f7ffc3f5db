// Exchanges of bytes between ranks: messages, broadcasts, all-to-all; several channels and threads at once; the world
// itself.
#include <mpi.h>

#include <fstream>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "layout/mesh.h"
#include "ranks/support.h"

namespace megalith::testing_ranks {
namespace {

constexpr int64_t kSizes[] = {0, 1, 777, 5000, 300001, 1200000};

TEST(World, KnowsItsRanksAndHosts) {
  const char* promised = std::getenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(world().size(), promised != nullptr ? std::atoi(promised) : 1);
  int begun = 0;
  MPI_Initialized(&begun);
  EXPECT_EQ(begun != 0, world().size() > 1);
  const char* pretend = std::getenv("MEGALITH_PRETEND_RANKS_PER_HOST");
  const int per_host = pretend != nullptr && std::atoi(pretend) > 0 ? std::atoi(pretend) : world().size();
  EXPECT_EQ(world().hosts(), (world().size() + per_host - 1) / per_host);
  for (int rank = 0; rank < world().size(); rank++) EXPECT_EQ(world().host_of(rank), rank / per_host);
  for (int rank : world().neighbours()) EXPECT_EQ(world().host_of(rank), world().host());
}

TEST(World, PassesTextsAround) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<size_t>(rank * 1000 + 3), static_cast<char>('a' + rank));
  };
  for (int root = 0; root < world().size(); root++) {
    EXPECT_EQ(world().broadcast(text_of(world().rank()), root), text_of(root));
  }
  const std::vector<std::string> all = world().all_gather(text_of(world().rank()));
  ASSERT_EQ(static_cast<int>(all.size()), world().size());
  for (int rank = 0; rank < world().size(); rank++) EXPECT_EQ(all[static_cast<size_t>(rank)], text_of(rank));
  world().barrier();
}

TEST(Broadcast, GivesAllWhatTheRootHas) {
  for (int64_t size : kSizes) {
    const auto mine = drawn(world().rank(), size, Element::byte, 3);
    for (int root : {0, everyone().size() - 1}) {
      const auto expected = drawn(root, size, Element::byte, 3);
      for (Memory memory : kMemories) {
        Values values(memory, size, Element::byte);
        values.set(mine);
        everyone().broadcast(values.buffer(), root);
        ASSERT_EQ(values.bytes(), expected);
      }
    }
  }
}

TEST(AllToAll, MovesEveryPiece) {
  const int members = everyone().size();
  const int me = world().rank();
  const auto amount = [](int from, int to, int64_t scale) {
    return scale * ((from * 5 + to * 3) % 4) + (from == to);
  };
  for (int64_t scale : {0, 1, 1000, 200003}) {
    std::vector<int64_t> send_cuts{0}, receive_cuts{0};
    std::vector<std::byte> expected;
    for (int other = 0; other < members; other++) {
      send_cuts.push_back(send_cuts.back() + amount(me, other, scale));
      receive_cuts.push_back(receive_cuts.back() + amount(other, me, scale));
      const auto theirs = drawn(other * 100 + me, amount(other, me, scale), Element::byte, 4);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    for (Memory memory : kMemories) {
      Values from(memory, send_cuts.back(), Element::byte), to(memory, receive_cuts.back(), Element::byte);
      std::vector<std::byte> pieces;
      for (int other = 0; other < members; other++) {
        const auto piece = drawn(me * 100 + other, amount(me, other, scale), Element::byte, 4);
        pieces.insert(pieces.end(), piece.begin(), piece.end());
      }
      from.set(pieces);
      everyone().all_to_all(from.span(), send_cuts, to.span(), receive_cuts);
      ASSERT_EQ(to.bytes(), expected);
      ASSERT_EQ(from.bytes(), pieces);
    }
  }
}

// All ranks send around a ring at the same time: one thread sends while another receives on the same channel.
TEST(Messages, GoBothWaysAtOnce) {
  const int members = everyone().size(), me = everyone().place();
  if (members == 1) GTEST_SKIP() << "needs 2 ranks";
  const int next = (me + 1) % members, before = (me + members - 1) % members;
  for (Memory memory : kMemories) {
    for (int64_t size : kSizes) {
      Values out(memory, size, Element::byte), in(memory, size, Element::byte);
      out.set(drawn(me, size, Element::byte, 5));
      std::thread sender([&] { everyone().send(out.span(), next); });
      everyone().receive(in.span(), before);
      sender.join();
      ASSERT_EQ(in.bytes(), drawn(before, size, Element::byte, 5));
    }
  }
}

TEST(Messages, KeepTheirOrder) {
  if (world().size() == 1) GTEST_SKIP() << "needs 2 ranks";
  const int last = everyone().size() - 1;
  for (int i = 0; i < 50; i++) {
    const int64_t size = 1 + i * 37;
    Values values(i % 2 == 0 ? Memory::own : Memory::shared, size, Element::byte);
    if (everyone().place() == 0) {
      values.set(drawn(i, size, Element::byte, 6));
      everyone().send(values.span(), last);
    } else if (everyone().place() == last) {
      everyone().receive(values.span(), 0);
      ASSERT_EQ(values.bytes(), drawn(i, size, Element::byte, 6));
    }
  }
}

// Two lanes of the process use the groups of a mesh at the same time.
TEST(Channels, WorkBesideEachOther) {
  if (world().size() % 2 != 0) GTEST_SKIP() << "needs an even number of ranks";
  const Mesh mesh({.data = world().size() / 2, .pipeline = 1, .context = 1, .tensor = 2}, world().rank());
  Channel tensor = world().channel(mesh.peers(Axis::tensor), "tensor");
  Channel data = world().channel(mesh.peers(Axis::data), "data");
  const auto use = [&](Channel& channel, int64_t count, uint32_t seed) {
    const auto expected = summed(channel.members(), count, Element::float32, seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (int i = 0; i < 40; i++) {
      const auto mine = drawn(world().rank(), count, Element::float32, seed);
      std::memcpy(values.data(), mine.data(), mine.size());
      channel.all_reduce(std::span(values));
      if (std::memcmp(values.data(), expected.data(), expected.size()) != 0) return false;
    }
    return true;
  };
  bool one = false, other = false;
  std::thread lane([&] { one = use(tensor, 30001, 8); });
  other = use(data, 4001, 9);
  lane.join();
  EXPECT_TRUE(one);
  EXPECT_TRUE(other);
}

// A repeated reduction gives the same bits, whatever the load.
TEST(Channels, RerunsAreBitIdentical) {
  const int64_t count = 100003;
  std::vector<std::byte> first;
  for (int i = 0; i < 10; i++) {
    Values values(i % 2 == 0 ? Memory::own : Memory::shared, count, Element::float32);
    values.set(drawn(world().rank(), count, Element::float32, 12));
    if (i % world().size() == world().rank()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    everyone().all_reduce(values.buffer());
    if (first.empty()) first = values.bytes();
    ASSERT_EQ(values.bytes(), first);
  }
}

TEST(Channels, RefuseWhatDoesNotFit) {
  std::vector<float> values(10);
  EXPECT_THROW(everyone().all_gather(std::span(values), std::vector<int64_t>{0, 3}), Bug);
  EXPECT_THROW(world().channel({world().rank() + 1}, "others"), Bug);
}

// Shared memory has no name, so nothing can be left behind.
TEST(World, LeavesNothingInDevShm) {
  std::ifstream maps("/proc/self/maps");
  ASSERT_TRUE(maps.good());
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("/dev/shm/"), std::string::npos) << line;
}

}  // namespace
}  // namespace megalith::testing_ranks
