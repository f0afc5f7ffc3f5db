#include "launch/diagnosis.h"

#include <gtest/gtest.h>

#include <sstream>

#include "launch/rank_table.h"
#include "launch/watchdog.h"

namespace megalith::launch {
namespace {

RankView rank(int number) {
  RankView view;
  view.rank = number;
  view.host = "a";
  view.pid = 100 + number;
  view.state = RankState::training;
  view.step = 7;
  view.step_predicted_s = 1;
  return view;
}

RankView working(int number, double for_s) {
  RankView view = rank(number);
  view.lanes.push_back({Lane::compute, "backward", 3, 1, 40, for_s, 0.5, "", {}, 0});
  return view;
}

RankView waiting(int number, double for_s, std::vector<int> peers) {
  RankView view = rank(number);
  view.lanes.push_back({Lane::net, "norm", 3, kNoMicro, 41, for_s, 0.01, "all-reduce", std::move(peers), 0});
  return view;
}

TEST(Diagnosis, NamesTheRankThatWorksWhileOthersWait) {
  const Diagnosis v = find_culprit({waiting(0, 60, {1, 2}), working(1, 61), waiting(2, 60, {0, 1})});
  EXPECT_EQ(v.ranks, std::vector{1});
  EXPECT_NE(v.reason.find("rank 1 on a (pid 101) makes no progress, in backward of block 3, micro-batch 1, at step 7"),
            std::string::npos)
      << v.reason;
}

TEST(Diagnosis, AStoppedRankIsTheCulpritWhereverItWasStopped) {
  RankView stopped = waiting(2, 60, {0, 1});
  stopped.life = Life::stopped;
  EXPECT_EQ(find_culprit({waiting(0, 60, {1, 2}), working(1, 90), stopped}).ranks, std::vector{2});
}

TEST(Diagnosis, ADeadRankBeforeAll) {
  RankView stopped = working(0, 60), dead = waiting(1, 60, {0});
  stopped.life = Life::stopped;
  dead.life = Life::dead;
  EXPECT_EQ(find_culprit({stopped, dead}).ranks, std::vector{1});
}

TEST(Diagnosis, AShortOpBesideALongWaitIsNoReason) {
  RankView busy = waiting(0, 60, {1});
  busy.lanes.push_back({Lane::compute, "forward", 0, 0, 5, 0.1, 0.2, "", {}, 0});
  EXPECT_EQ(find_culprit({busy, rank(1)}).ranks, std::vector{1});  // in no op: it never reached the exchange
}

TEST(Diagnosis, WorkThatHangsBesideAnExchangeOfTheSameRank) {
  RankView both = waiting(1, 58, {0});
  both.lanes.push_back({Lane::compute, "forward", 0, 0, 5, 60, 0.2, "", {}, 0});
  EXPECT_EQ(find_culprit({waiting(0, 60, {1}), both}).ranks, std::vector{1});
}

TEST(Diagnosis, ARankThatIsAStepBehind) {
  RankView behind = waiting(1, 60, {0});
  behind.step = 6;
  EXPECT_EQ(find_culprit({waiting(0, 60, {1}), behind, waiting(2, 60, {0})}).ranks, std::vector{1});
}

TEST(Diagnosis, ACircleNamesItsMembersOnly) {
  const Diagnosis v = find_culprit({waiting(0, 60, {1}), waiting(1, 60, {2}), waiting(2, 60, {1}), waiting(3, 60, {0})});
  EXPECT_EQ(v.ranks, (std::vector{1, 2}));
  EXPECT_NE(v.reason.find("ranks 1 and 2 wait for each other"), std::string::npos) << v.reason;
}

TEST(RankTable, HasARowForEveryLaneOfEveryRank) {
  RankView two = waiting(1, 90, {0, 2});
  two.lanes.push_back({Lane::compute, "forward", 2, 0, 5, 3, 0.2, "", {}, 0});
  RankView dead = rank(2);
  dead.life = Life::dead;
  std::istringstream lines(rank_table({working(0, 61), two, dead}));
  std::vector<std::vector<std::string>> words;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    words.push_back({std::istream_iterator<std::string>(fields), {}});
  }
  ASSERT_EQ(words.size(), 5u);  // the heading, one row, two rows, one row
  EXPECT_EQ(words[1],
            (std::vector<std::string>{"0", "a", "100", "training", "7", "compute", "backward", "3", "1", "1m", "01s"}));
  EXPECT_EQ(words[2], (std::vector<std::string>{"1", "a", "101", "training", "7", "net", "norm,", "all-reduce", "3", "-",
                                                "1m", "30s", "ranks", "0", "and", "2"}));
  EXPECT_EQ(words[3], (std::vector<std::string>{"compute", "forward", "2", "0", "3.0s"}));
  EXPECT_EQ(words[4], (std::vector<std::string>{"2", "a", "102", "dead", "7", "-", "-", "-", "-", "-"}));
}

TEST(Watchdog, WaitsTwentyTimesThePredictedStepAndAMinuteAtLeast) {
  Watchdog dog(0);
  RankView view = working(0, 0);
  view.step_predicted_s = 10;
  EXPECT_DOUBLE_EQ(dog.limit_s(view, view.lanes.front()), 200);
  view.step_predicted_s = 0.1;
  EXPECT_DOUBLE_EQ(dog.limit_s(view, view.lanes.front()), 60);
  view.lanes.front().predicted_s = 30;
  EXPECT_DOUBLE_EQ(dog.limit_s(view, view.lanes.front()), 600);
}

TEST(Watchdog, CountsTheTimeThatAnOpDoesNotChange) {
  Watchdog dog(5);
  RankView view = working(0, 0);
  for (int i = 0; i < 5; i++) ASSERT_FALSE(dog.look({view}, 1));
  view.lanes.front().entered++;  // progress
  for (int i = 0; i < 5; i++) ASSERT_FALSE(dog.look({view}, 1));
  const auto said = dog.look({view}, 1);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("rank 0: backward of block 3, micro-batch 1 at step 7 has taken 6.0s"), std::string::npos) << *said;
}

// After a suspension, the gap between two calls is long. The ranks were suspended with the watchdog.
TEST(Watchdog, ALongLookCountsAsASecond) {
  Watchdog dog(5);
  EXPECT_FALSE(dog.look({working(0, 3600)}, 3600));
}

TEST(Watchdog, OffSaysNothing) {
  Watchdog dog(-1);
  for (int i = 0; i < 1000; i++) ASSERT_FALSE(dog.look({working(0, i)}, 1));
}

}  // namespace
}  // namespace megalith::launch
