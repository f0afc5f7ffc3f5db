#include "memory/allocator.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

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
