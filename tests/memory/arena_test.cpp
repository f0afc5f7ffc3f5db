// Compares random blocks with a plain list of them. The kernel (mincore) says which have pages.
#include "memory/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace megalith {
namespace {

constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20;

size_t bytes_with_pages(const Arena& arena) {
  size_t pages = 0;
  for (const auto& space : arena.spaces()) {
    std::vector<unsigned char> present((space->end() - space->begin()) / kPage);
    EXPECT_EQ(mincore(reinterpret_cast<void*>(space->begin()), space->end() - space->begin(), present.data()), 0);
    pages += static_cast<size_t>(std::count_if(present.begin(), present.end(), [](unsigned char p) { return p & 1; }));
  }
  return pages * kPage;
}

// An arena with the limit that its owner, the allocator, sets: memory with pages never exceeds the largest live total.
class Bounded {
 public:
  explicit Bounded(size_t reserve = 4096 * kMiB) : arena(reserve) {}
  ~Bounded() {
    for (auto& [begin, block] : blocks) arena.give(begin);
  }

  void take(size_t wanted) {
    auto* begin = static_cast<char*>(arena.take(wanted));
    const size_t bytes = Arena::rounded(wanted);
    auto next = blocks.lower_bound(begin);
    const bool meets_next = next != blocks.end() && next->first < begin + bytes;
    const bool meets_last = next != blocks.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin;
    ASSERT_FALSE(meets_next || meets_last);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(begin) % (bytes >= 8 * kMiB ? kHugePage : kPage), 0u);
    blocks[begin] = {bytes, ++stamps};
    live += bytes;
    most = std::max(most, live);
    arena.drop_down_to(most - live);
    for (size_t at = 0; at < bytes; at += kPage) write(begin + at, stamps + at);
    write(begin + bytes - sizeof(uint64_t), ~stamps);
  }

  void check(char* begin, size_t bytes, uint64_t stamp) {
    for (size_t at = kPage; at < bytes; at += kPage) ASSERT_EQ(read(begin + at), stamp + at);
    ASSERT_EQ(read(begin), stamp);
    ASSERT_EQ(read(begin + bytes - sizeof(uint64_t)), ~stamp);
  }
  void give_nth(size_t n) {
    auto it = std::next(blocks.begin(), static_cast<ptrdiff_t>(n));
    check(it->first, it->second.bytes, it->second.stamp);
    ASSERT_EQ(arena.give(it->first), it->second.bytes);
    live -= it->second.bytes;
    blocks.erase(it);
  }

  void expect_bound() {
    EXPECT_LE(live + arena.cached(), most);
    EXPECT_LE(bytes_with_pages(arena), live + arena.cached());
  }

  struct Block {
    size_t bytes;
    uint64_t stamp;
  };
  Arena arena;
  std::map<char*, Block> blocks;
  size_t live = 0, most = 0;
  uint64_t stamps = 0;

 private:
  static void write(char* at, uint64_t value) { std::memcpy(at, &value, sizeof value); }
  static uint64_t read(const char* at) {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
};

class RandomBlocks : public testing::TestWithParam<int> {};

TEST_P(RandomBlocks, NeitherMeetNorForgetNorOutgrowTheBound) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Bounded it;
  for (int round = 0; round < 3000; round++) {
    // Phases: mostly allocate up to 160 MiB, then mostly free.
    const bool rising = (round / 150) % 2 == 0;
    if (it.blocks.empty() || (it.live < 160 * kMiB && below(10) < (rising ? 7u : 3u))) {
      const size_t kinds[] = {256 * kKiB + below(kMiB), below(12 * kMiB) + 1, 8 * kMiB + below(24 * kMiB), 3 * kMiB};
      it.take(kinds[below(4)]);
    } else {
      it.give_nth(below(it.blocks.size()));
    }
    if (HasFatalFailure()) return;
    if (round % 50 == 0) it.expect_bound();
  }
  it.expect_bound();
  it.arena.drop_down_to(0);
  EXPECT_LE(bytes_with_pages(it.arena), it.live);
  for (auto& [begin, block] : it.blocks) it.check(begin, block.bytes, block.stamp);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBlocks, testing::Range(1, 6));

// Frees every second block, then allocates blocks one page larger than the holes. No block fits into a hole, repeatedly.
TEST(Arena, HolesCostNoMemory) {
  Bounded it;
  for (size_t round = 0; round < 6; round++) {
    const size_t bytes = (256 + 4 * round) * kKiB;
    while (it.live + bytes <= 96 * kMiB) it.take(bytes);
    for (size_t n = 0; n < it.blocks.size(); n++) it.give_nth(n);  // later blocks move down in the list, so this frees every
                                                                   // second one
    it.expect_bound();
  }
  it.take(90 * kMiB - it.live);
  it.expect_bound();
  EXPECT_LE(bytes_with_pages(it.arena), 96 * kMiB);
}

TEST(Arena, FreedNeighboursServeALargerBlockWithoutNewPages) {
  Arena arena(256 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 12; i++) {
    blocks.push_back(arena.take(kMiB));
    std::memset(blocks.back(), 1, kMiB);
  }
  for (int i : {3, 1, 7, 5, 11, 9, 2, 4, 10, 8, 6, 0}) arena.give(blocks[static_cast<size_t>(i)]);
  EXPECT_EQ(arena.cached(), 12 * kMiB);
  void* large = arena.take(12 * kMiB);
  EXPECT_EQ(large, blocks[0]);
  EXPECT_EQ(arena.cached(), 0u);
  arena.give(large);
}

TEST(Arena, ABlockReachesFromOldPagesIntoNewOnes) {
  Arena arena(256 * kMiB);
  void* first = arena.take(3 * kMiB);
  std::memset(first, 1, 3 * kMiB);
  arena.give(first);
  void* larger = arena.take(5 * kMiB);
  EXPECT_EQ(larger, first);
  EXPECT_EQ(arena.cached(), 0u);
  EXPECT_EQ(bytes_with_pages(arena), 3 * kMiB);
  arena.give(larger);
}

TEST(Arena, DropsWhatWasFreedLongestAgo) {
  Arena arena(256 * kMiB);
  std::vector<char*> blocks;
  for (int i = 0; i < 5; i++) {
    blocks.push_back(static_cast<char*>(arena.take(kMiB)));
    std::memset(blocks.back(), i + 1, kMiB);
  }
  for (size_t i : {2u, 0u, 4u}) arena.give(blocks[i]);
  arena.drop_down_to(2 * kMiB);
  EXPECT_EQ(bytes_with_pages(arena), 4 * kMiB);
  unsigned char present = 1;
  mincore(blocks[2], kPage, &present);
  EXPECT_FALSE(present & 1);
  arena.drop_down_to(kMiB + 5);  // rounded to whole pages
  EXPECT_EQ(arena.cached(), kMiB);
  mincore(blocks[4], kPage, &present);
  EXPECT_TRUE(present & 1);
  EXPECT_EQ(blocks[1][kMiB - 1], 2);
  arena.give(blocks[1]);
  arena.give(blocks[3]);
}

TEST(Arena, ReservesMoreAddressesWhenTheyAreUsedUp) {
  Bounded it(16 * kMiB);
  for (size_t n : {6, 6, 6, 40, 3, 12}) it.take(n * kMiB);
  EXPECT_GT(it.arena.spaces().size(), 2u);
  for (auto& [begin, block] : it.blocks) it.check(begin, block.bytes, block.stamp);
  it.expect_bound();
}

// A block slightly larger than 8 MiB must not allocate a huge page for its last part.
TEST(Arena, HugePagesNeverReachBeyondTheirBlock) {
  Arena arena(256 * kMiB);
  auto* block = static_cast<char*>(arena.take(8 * kMiB + 3 * kPage));
  std::memset(block, 1, 8 * kMiB + 3 * kPage);
  EXPECT_EQ(bytes_with_pages(arena), 8 * kMiB + 3 * kPage);
  arena.give(block);
  arena.drop_down_to(0);
  EXPECT_EQ(bytes_with_pages(arena), 0u);
  auto* small = static_cast<char*>(arena.take(300 * kKiB));  // where the huge page was
  ASSERT_EQ(small, block);
  small[0] = 1;
  EXPECT_EQ(bytes_with_pages(arena), kPage);
  arena.give(small);
}

}  // namespace
}  // namespace megalith
