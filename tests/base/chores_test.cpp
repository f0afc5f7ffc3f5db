#include "base/chores.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace megalith {
namespace {

// A thread that computes, and calls help() if `comes_by`, until stop(). A helper thread computes with it.
class Computer {
 public:
  explicit Computer(bool comes_by = true) {
    thread_ = std::thread([this, comes_by] {
      Chores::Computing computing;
      std::thread helper([this, comes_by] { work(comes_by); });
      work(comes_by);
      helper.join();
    });
    while (ready_ < 2) std::this_thread::yield();
  }
  ~Computer() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work(bool comes_by) {
    Chores::of_process().help();
    ready_++;
    while (!stop_) {
      if (comes_by) Chores::of_process().help();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  std::atomic<int> ready_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

TEST(Chores, AreDoneAtOnceWhereNobodyComputes) {
  HandedOver chores;
  std::thread::id by;
  chores.add([&] { by = std::this_thread::get_id(); });
  EXPECT_TRUE(chores.done(0));
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(Chores, AreDoneAtOnceByOneWhoComputesItself) {
  Chores::Computing computing;
  HandedOver chores;
  chores.add([] {});
  EXPECT_TRUE(chores.done(0));
}

TEST(Chores, AreDoneByThoseWhoComeBy) {
  Computer computer;
  std::atomic<int> here = 0, done = 0;
  {
    HandedOver chores;
    for (int i = 0; i < 1000; i++)
      chores.add([&, caller = std::this_thread::get_id()] {
        here += std::this_thread::get_id() == caller;
        done++;
      });
    chores.wait_all();
    EXPECT_EQ(done, 1000);
  }
  EXPECT_LT(here, 500);  // 0 on a machine that never delays a thread longer than our patience
}

TEST(Chores, AreNotLeftToThoseWhoDoNotComeBy) {
  Computer computer(false);
  HandedOver chores;
  std::atomic<int> done = 0;
  for (int i = 0; i < 20; i++) chores.add([&] { done++; });
  chores.wait_all();
  EXPECT_EQ(done, 20);
}

TEST(Chores, AreDoneHereByOneWhoDoesNotWait) {
  Computer computer(false);
  HandedOver chores;
  std::thread::id by;
  chores.add([&] { by = std::this_thread::get_id(); });
  chores.finish(0);
  EXPECT_TRUE(chores.done(0));
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(Chores, SayWhatTheyThrew) {
  Computer computer;
  HandedOver chores;
  for (int i = 0; i < 3; i++)
    chores.add([i] {
      if (i == 1) throw std::runtime_error("the second");
    });
  EXPECT_NO_THROW(chores.wait(0));
  EXPECT_NO_THROW(chores.wait(2));
  EXPECT_THROW(chores.wait(1), std::runtime_error);
  EXPECT_THROW(chores.wait_all(), std::runtime_error);
}

TEST(Chores, EndBeforeWhatTheyWorkOn) {
  Computer computer;
  std::atomic<int> done = 0;
  {
    HandedOver chores;
    for (int i = 0; i < 50; i++)
      chores.add([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        done++;
      });
  }
  EXPECT_EQ(done, 50);
}

// If computing ends while chores are in the queue, the thread that waits for them does them.
TEST(Chores, GoOnWhenComputingEnds) {
  for (int round = 0; round < 20; round++) {
    Computer computer;
    HandedOver chores;
    std::atomic<int> done = 0;
    for (int i = 0; i < 10; i++) chores.add([&] { done++; });
    computer.stop();
    for (int i = 10; i < 20; i++) chores.add([&] { done++; });
    chores.wait_all();
    EXPECT_EQ(done, 20);
  }
}

}  // namespace megalith
