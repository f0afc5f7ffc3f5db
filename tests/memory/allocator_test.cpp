#include "memory/allocator.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace megalith {
namespace {

at::Tensor floats(int64_t n) { return at::empty({n}, at::kFloat); }

struct Allocator : testing::Test {
  void SetUp() override {
    install_allocator();
    release_cached_memory();
    reset_memory_peak();
  }
  void TearDown() override { set_allocation_budget(Bytes(0)); }
};

TEST_F(Allocator, CountsByKindAndRemembersThePeak) {
  int64_t before = allocated_memory().live;
  {
    MemoryScope scope(AllocationKind::parameters);
    at::Tensor a = floats(1 << 20);
    {
      MemoryScope inner(AllocationKind::activations);
      at::Tensor b = floats(1 << 19);
      EXPECT_EQ(allocated_memory().now[static_cast<size_t>(AllocationKind::activations)], 2 << 20);
    }
    EXPECT_EQ(allocated_memory().live - before, 4 << 20);
  }
  EXPECT_EQ(allocated_memory().live, before);
  EXPECT_EQ(allocated_memory().peak - before, 6 << 20);
  EXPECT_EQ(allocated_memory().at_peak[static_cast<size_t>(AllocationKind::activations)], 2 << 20);
}

TEST_F(Allocator, RefusesWhatWouldBreakTheBudgetAndGoesOn) {
  set_allocation_budget(Bytes(allocated_memory().live + (8 << 20)));
  at::Tensor kept = floats(1 << 20);
  EXPECT_THROW(floats(2 << 20), BudgetExceeded);
  EXPECT_NO_THROW(floats(1 << 20));
}

TEST_F(Allocator, LiveAndCachedStayWithinTheLargestLiveTotal) {
  for (int64_t n = 1; n < 40; n++) floats(n << 17);
  AllocatedMemory use = allocated_memory();
  EXPECT_LE(use.live + use.cached, use.peak);
}

TEST_F(Allocator, GivesBackTheSameBlockForTheSameSize) {
  void* first = floats(1 << 20).data_ptr();
  EXPECT_EQ(floats(1 << 20).data_ptr(), first);
}

TEST_F(Allocator, LargeBlocksBeginOnPagesAndVeryLargeOnesOnHugePages) {
  at::Tensor block = floats((1 << 16) + 1), large = floats((2 << 20) + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data_ptr()) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data_ptr()) % (2 << 20), 0u);
  for (int64_t n : {1, 15, 1000, 60000})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(floats(n).data_ptr()) % 64, 0u);
}

TEST_F(Allocator, CountsWholePages) {
  int64_t before = allocated_memory().live;
  at::Tensor block = floats((1 << 16) + 1);
  EXPECT_EQ(allocated_memory().live - before, (256 << 10) + 4096);
}

TEST_F(Allocator, AFreedBlockServesSmallerOnes) {
  floats(4 << 20).zero_();
  const int64_t cached = allocated_memory().cached;
  EXPECT_EQ(cached, 16 << 20);
  at::Tensor a = floats(1 << 20), b = floats(1 << 18);
  EXPECT_EQ(allocated_memory().cached, cached - (5 << 20));
}

TEST_F(Allocator, ALowerBudgetGivesCachedMemoryBack) {
  floats(8 << 20).zero_();
  at::Tensor kept = floats(1 << 20);
  const int64_t budget = allocated_memory().live + (2 << 20);
  set_allocation_budget(Bytes(budget));
  EXPECT_LE(allocated_memory().live + allocated_memory().cached, budget);
}

TEST_F(Allocator, RefusesMoreThanTheMachineHas) {
  EXPECT_THROW(floats(int64_t{1} << 44), BudgetExceeded);
  EXPECT_NO_THROW(floats(1 << 20));
}

TEST_F(Allocator, EveryKindHasAName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kAllocationKinds; kind++) names.insert(name(static_cast<AllocationKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kAllocationKinds));
  EXPECT_EQ(name(AllocationKind::staging), "staging");
}

TEST_F(Allocator, ManyThreadsKeepTheirContents) {
  const int64_t before = allocated_memory().live;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<at::Tensor> mine;
      for (int i = 0; i < 400; i++) {
        if (mine.size() > 6) mine.erase(mine.begin() + static_cast<int64_t>(random() % mine.size()));
        const int64_t n = 1 + static_cast<int64_t>(random() % (i % 8 == 0 ? 3 << 20 : 1 << 18));
        mine.push_back(floats(n));
        float* data = mine.back().mutable_data_ptr<float>();
        std::fill_n(data, n, static_cast<float>(t * 1000 + i));
        for (const at::Tensor& one : mine) {
          const float* d = one.const_data_ptr<float>();
          const int64_t last = one.numel() - 1;
          wrong += d[0] != d[last] || d[last / 2] != d[last] || static_cast<int>(d[0]) / 1000 != t;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allocated_memory().live, before);
  EXPECT_LE(allocated_memory().live + allocated_memory().cached, allocated_memory().peak);
}

TEST_F(Allocator, ManyThreadsAddUp) {
  int64_t before = allocated_memory().live;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (int i = 0; i < 200; i++) floats((i % 7 + 1) << 15);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(allocated_memory().live, before);
}

}  // namespace
}  // namespace megalith
