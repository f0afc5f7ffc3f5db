// Also built with ThreadSanitizer. The fake blocks are plain arrays, so ThreadSanitizer reports an op that runs too early as
// a race.
#include "schedule/lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>

#include "base/error.h"
#include "schedule/fake_blocks.h"
#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

std::ptrdiff_t threads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

Schedule two_lanes(std::vector<Op> ops) {
  return {.blocks = make_blocks(2, false), .micros = 1, .training = true, .ops = std::move(ops)};
}

TEST(Lanes, AThousandRunsGiveWhatTheOpsOneByOneGive) {
  Random random(6);
  Lanes lanes;
  for (int run = 0; run < 1000; run++) {
    Schedule schedule = random_schedule(random);
    if (run % 2 == 0)
      spread(schedule, random);  // all lanes work, and only dependencies keep the order
    FakeBlocks blocks(schedule, 16);
    const auto spans = lanes.run(schedule, [&](OpId op) { blocks.work(op); });
    ASSERT_EQ(blocks.state(), run_in_order(schedule, 16)) << "run " << run;
    std::map<Lane, double> free;
    for (size_t op = 0; op < spans.size(); op++) {
      ASSERT_TRUE(spans[op].ran());
      ASSERT_LE(spans[op].start, spans[op].end);
      for (OpId after : schedule.ops[op].after) ASSERT_GE(spans[op].start, spans[after].end);
      ASSERT_GE(spans[op].start, free[schedule.ops[op].lane]);
      free[schedule.ops[op].lane] = spans[op].end;
    }
  }
}

TEST(Lanes, OpsOfDifferentLanesRunAtTheSameTime) {
  std::promise<void> here, there;
  auto meet = [](std::promise<void>& mine, std::promise<void>& others) {
    mine.set_value();
    if (others.get_future().wait_for(20s) != std::future_status::ready)
      throw Fault("the other op did not come");
  };
  Lanes lanes;
  lanes.run(save_only(make_blocks(2, false)), [](OpId) {});  // starts the thread of the write lane
  const Schedule schedule = two_lanes({{.kind = ops::count_targets, .after = {}},
                                       {.kind = ops::save, .block = 0, .lane = Lane::write, .after = {}}});
  EXPECT_NO_THROW(lanes.run(schedule, [&](OpId op) { op == 0 ? meet(here, there) : meet(there, here); }));
}

TEST(Lanes, ComputeIsTheCallersThreadAndTheOthersStayFromRunToRun) {
  const Schedule schedule = with_save(with_updates_aside(training_step(make_blocks(3, true), 2)));
  Lanes lanes;
  std::map<Lane, std::thread::id> ids[2];
  for (auto& seen : ids) {
    std::mutex mutex;
    lanes.run(schedule, [&](OpId op) {
      std::lock_guard lock(mutex);
      const Lane lane = schedule.ops[op].lane;
      EXPECT_TRUE(!seen.contains(lane) || seen[lane] == std::this_thread::get_id());
      seen[lane] = std::this_thread::get_id();
    });
  }
  EXPECT_EQ(ids[0][Lane::compute], std::this_thread::get_id());
  EXPECT_NE(ids[0][Lane::write], ids[0][Lane::send]);
  EXPECT_EQ(ids[0], ids[1]);
}

TEST(Lanes, OnlyLanesThatAScheduleUsesHaveAThread) {
  std::thread([] {}).join();  // a sanitizer starts its own thread with the program's first one
  const auto before = threads();
  {
    Lanes lanes;
    lanes.run(evaluation_step(make_blocks(3, false), 2), [](OpId) {});
    EXPECT_EQ(threads(), before);
    lanes.run(with_updates_aside(training_step(make_blocks(3, false), 2)), [](OpId) {});
    EXPECT_EQ(threads(), before + 1);
  }
  EXPECT_EQ(threads(), before);
}

TEST(Lanes, WhatAnOpThrowsReachesTheCallerAndStopsTheRest) {
  Random random(8);
  Lanes lanes;
  for (int run = 0; run < 300; run++) {
    Schedule schedule = random_schedule(random);
    if (run % 2 == 0) spread(schedule, random);
    const OpId bad = pick(random, 0, static_cast<int32_t>(schedule.ops.size()) - 1);
    std::vector<std::atomic<bool>> started(schedule.ops.size());
    try {
      lanes.run(schedule, [&](OpId op) {
        started[op] = true;
        if (op == bad) throw Fault("disk full");
      });
      FAIL() << "nothing was thrown";
    } catch (const Fault& fault) {
      EXPECT_STREQ(fault.what(), "disk full");
    }
    for (size_t op = 0; op < schedule.ops.size(); op++) {
      for (OpId after : schedule.ops[op].after) EXPECT_FALSE(after == bad && started[op]);
      const bool behind = schedule.ops[op].lane == schedule.ops[bad].lane && static_cast<OpId>(op) > bad;
      EXPECT_FALSE(behind && started[op]);
    }
    FakeBlocks blocks(schedule);  // the next run works again
    lanes.run(schedule, [&](OpId op) { blocks.work(op); });
    ASSERT_EQ(blocks.state(), run_in_order(schedule));
  }
}

TEST(Lanes, WhenTwoOpsThrowOneIsReportedAndBothEnd) {
  const Schedule schedule = two_lanes({{.kind = ops::count_targets, .after = {}},
                                       {.kind = ops::save, .block = 0, .lane = Lane::write, .after = {}}});
  Lanes lanes;
  for (int run = 0; run < 100; run++) {
    EXPECT_THROW(lanes.run(schedule, [](OpId op) { throw Fault(op == 0 ? "first" : "second"); }), Fault);
  }
}

TEST(Lanes, OpsThatWaitInACircleAreABugAndNotAHang) {
  Lanes lanes;
  const Schedule crossed = two_lanes({{.kind = ops::count_targets, .after = {1}},
                                      {.kind = ops::save, .block = 0, .lane = Lane::write, .after = {0}}});
  const Schedule against_lane =
      two_lanes({{.kind = ops::count_targets, .after = {1}}, {.kind = ops::prepare_update, .after = {}}});
  const Schedule last_leaves =
      two_lanes({{.kind = ops::count_targets, .after = {}},
                 {.kind = ops::save, .block = 0, .lane = Lane::write, .after = {2}},
                 {.kind = ops::commit, .lane = Lane::write, .after = {}}});
  for (int run = 0; run < 100; run++) {
    EXPECT_THROW(lanes.run(crossed, [](OpId) {}), Bug);
    EXPECT_THROW(lanes.run(against_lane, [](OpId) {}), Bug);
    EXPECT_THROW(lanes.run(last_leaves, [](OpId) {}), Bug);
  }
}

TEST(Lanes, ARunWithinARunIsABug) {
  Lanes lanes;
  const Schedule schedule = evaluation_step(make_blocks(2, false), 1);
  EXPECT_THROW(lanes.run(schedule, [&](OpId) { lanes.run(schedule, [](OpId) {}); }), Bug);
  EXPECT_NO_THROW(lanes.run(schedule, [](OpId) {}));
}

TEST(Lanes, AnEmptyScheduleIsDoneAtOnce) { EXPECT_TRUE(Lanes().run(two_lanes({}), [](OpId) {}).empty()); }

}  // namespace
}  // namespace megalith
