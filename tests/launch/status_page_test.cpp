#include "launch/status_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "launch/rank_view.h"
#include "schedule/ops/all.h"

namespace megalith::launch {
namespace {

class StatusPageTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("megalith-page-test-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(StatusPageTest, TellsOpExchangeAndWhomItWaitsFor) {
  StatusPage page(page_file(folder_, 2), 2);
  page.state(RankState::training);
  page.step(17, 0.5);
  page.checkpoint(10);
  page.enter({ops::backward, 4, 1, Lane::compute, {}}, 0.25);
  page.enter({ops::gradient_norm, 5, kNoMicro, Lane::net, {}}, 0.001);
  const std::vector<int> peers{0, 1, 3};
  page.waiting(Lane::net, "all-reduce over data", peers);

  const std::vector<RankView> views = look_at_ranks(folder_);
  ASSERT_EQ(views.size(), 1u);
  const RankView& view = views.front();
  EXPECT_EQ(view.rank, 2);
  EXPECT_EQ(view.pid, ::getpid());
  EXPECT_EQ(view.life, Life::running);
  EXPECT_EQ(view.state, RankState::training);
  EXPECT_EQ(view.step, 17);
  EXPECT_EQ(view.checkpoint, 10);
  ASSERT_EQ(view.lanes.size(), 2u);
  EXPECT_EQ(describe(view.lanes[0]), "backward of block 4, micro-batch 1");
  EXPECT_EQ(describe(view.lanes[1]), "gradient norm of block 5, in all-reduce over data with ranks 0, 1 and 3");
  EXPECT_GE(view.lanes[0].for_s, view.lanes[1].for_s);
  EXPECT_GE(view.lanes[1].for_s, 0);

  page.arrived(Lane::net);
  page.leave(Lane::compute);
  const RankView after = look_at_ranks(folder_).front();
  ASSERT_EQ(after.lanes.size(), 1u);
  EXPECT_EQ(describe(after.lanes[0]), "gradient norm of block 5");
}

TEST_F(StatusPageTest, ManyPeersAreCounted) {
  StatusPage page(page_file(folder_, 0), 0);
  std::vector<int> peers(40);
  for (int i = 0; i < 40; i++) peers[static_cast<size_t>(i)] = i + 1;
  page.enter({ops::gradient_norm, 5, kNoMicro, Lane::net, {}}, 0.001);
  page.waiting(Lane::net, std::string(100, 'x'), peers);
  const LaneView lane = look_at_ranks(folder_).front().lanes.front();
  EXPECT_EQ(static_cast<int>(lane.peers.size()) + lane.more_peers, 40);
  EXPECT_EQ(lane.peers.front(), 1);
  EXPECT_TRUE(std::string(100, 'x').starts_with(lane.exchange));
}

TEST_F(StatusPageTest, AFailureKeepsItsMessageAfterTheProcessIsGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    StatusPage page(page_file(folder_, 1), 1);
    page.enter({ops::forward, 0, 0, Lane::compute, {}}, 1);
    page.end(ExitCode::user, "run.yaml:3: train.lr: expected a number above 0, got -1");
    ::_exit(2);
  }
  ::waitpid(child, nullptr, 0);
  const RankView view = look_at_ranks(folder_).front();
  EXPECT_EQ(view.life, Life::dead);
  EXPECT_EQ(view.state, RankState::failed);
  EXPECT_FALSE(view.crashed());
  EXPECT_EQ(view.code, 2);
  EXPECT_EQ(view.message, "run.yaml:3: train.lr: expected a number above 0, got -1");
}

TEST_F(StatusPageTest, AStoppedOneIsSeenAsStoppedAndAKilledOneAsCrashed) {
  const pid_t child = ::fork();
  if (child == 0) {
    StatusPage page(page_file(folder_, 1), 1);
    std::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(look_at_ranks(folder_).front().life, Life::stopped);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(look_at_ranks(folder_).front().crashed());
}

TEST_F(StatusPageTest, OtherFilesAreNoPages) {
  std::ofstream(folder_ / "rank-0") << "short";
  std::ofstream(folder_ / "rank-1") << std::string(100000, 'x');
  EXPECT_TRUE(look_at_ranks(folder_).empty());
}

// Every op that a reader gets was written as a whole: kind, block and micro-batch belong together.
TEST_F(StatusPageTest, AReaderNeverSeesHalfAnOp) {
  const auto file = page_file(folder_, 0);
  StatusPage page(file, 0);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 200000; i++) page.enter({static_cast<OpKind>(i % 4), i, i + 1, Lane::compute, {}}, i);
    done = true;
  });
  int64_t seen = 0;
  while (!done) {
    const LaneStatus lane = read_page(file)->lanes[0];
    if (lane.entered == 0) continue;
    const int i = static_cast<int>(lane.entered) - 1;
    ASSERT_EQ(lane.block, i);
    ASSERT_EQ(lane.micro, i + 1);
    ASSERT_EQ(static_cast<int>(lane.kind), i % 4);
    ASSERT_EQ(lane.predicted_s, i);
    seen++;
  }
  writer.join();
  EXPECT_GT(seen, 0);
}

TEST(RankViews, TravelAsJson) {
  RankView view{3, "b", 77, Life::stopped, RankState::saving, 0, 1.5, "", 9, 5, 0.25, {}};
  view.lanes.push_back({Lane::net, "norm", 4, kNoMicro, 12, 3.5, 0.125, "send", {1, 2}, 3});
  const RankView back = rank_view(to_json(view));
  EXPECT_EQ(to_json(back), to_json(view));
  EXPECT_EQ(back.lanes.front().peers, view.lanes.front().peers);
  EXPECT_EQ(back.life, Life::stopped);
}

}  // namespace
}  // namespace megalith::launch
