#include "base/start_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>

#include "base/error.h"

namespace megalith {
namespace {

TEST(StartThreads, StartsEachWithItsNumber) {
  std::atomic<size_t> numbers = 0;
  std::vector<std::thread> threads = start_threads(3, [&](size_t i) { numbers += i + 1; });
  EXPECT_EQ(threads.size(), 3u);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers, 6u);
}

// A stack larger than the address space has the same effect as a system that cannot start another thread.
TEST(StartThreads, WithoutRoomForAThreadItIsAFaultOfTheMachine) {
  pthread_attr_t former, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&former), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(start_threads(2, [](size_t) {}), Fault);
  EXPECT_THROW(start_thread([] {}), Fault);
  ::pthread_setattr_default_np(&former);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&former);
}

}  // namespace
}  // namespace megalith
