// Waits without ranks: threads of one process on flags.
#include "comm/wait.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/flag.h"

namespace megalith {
namespace {

const std::string kChannel = "gradients";

TEST(Waits, ARaiseIsNeverMissed) {
  WaitControl control;
  for (bool spin : {true, false}) {
    control.may_spin = spin;
    Flag ping{}, pong{};
    std::thread other([&] {
      for (uint32_t i = 1; i <= 3000; i++) {
        await(ping, i, control, "ping", kChannel, 0);
        pong.raise(i);
      }
    });
    for (uint32_t i = 1; i <= 3000; i++) {
      ping.raise(i);
      if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let the waiting thread fall asleep
      await(pong, i, control, "pong", kChannel, 1);
    }
    other.join();
  }
}

TEST(Waits, CountsWrapAround) {
  Flag flag{};
  flag.raise(0xfffffffe);
  EXPECT_TRUE(flag.reached(0xfffffffe));
  EXPECT_FALSE(flag.reached(0xffffffff));
  EXPECT_FALSE(flag.reached(1));
  flag.raise(1);
  EXPECT_TRUE(flag.reached(0xffffffff));
}

struct Log : WaitObserver {
  std::atomic<int> begun{0}, ended{0}, peer{-1};
  std::string what, channel;
  void wait_begins(const Wait& wait) override {
    what = wait.what;
    channel = *wait.channel;
    peer = wait.peer;
    begun++;
  }
  void wait_ends(const Wait&) override { ended++; }
};

TEST(Waits, AreSeenAndStoppedFromOutside) {
  WaitControl control;
  Log log;
  control.observer = &log;
  Flag never{};
  std::thread supervisor([&] {
    while (log.begun == 0) std::this_thread::yield();
    control.stop = true;
  });
  try {
    await(never, 1, control, "receive", kChannel, 7);
    ADD_FAILURE() << "nobody raised the flag";
  } catch (const Fault& fault) {
    EXPECT_NE(std::string(fault.what()).find("rank 7"), std::string::npos) << fault.what();
    EXPECT_NE(std::string(fault.what()).find("gradients"), std::string::npos) << fault.what();
  }
  supervisor.join();
  EXPECT_EQ(log.begun, 1);
  EXPECT_EQ(log.ended, 1);
  EXPECT_EQ(log.what, "receive");
  EXPECT_EQ(log.channel, "gradients");
  EXPECT_EQ(log.peer, 7);
}

TEST(Waits, WhatIsThereAlreadyIsNotWaitedFor) {
  WaitControl control;
  Log log;
  control.observer = &log;
  control.stop = true;
  Flag flag{};
  flag.raise(3);
  await(flag, 2, control, "receive", kChannel, 0);
  EXPECT_EQ(log.begun, 0);
}

}  // namespace
}  // namespace megalith
