#include "train/status_observer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "launch/rank_view.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

// Two lanes at once, each with its own wait: the page tells which lane waits for whom.
TEST(StatusObserver, AWaitBelongsToTheLaneWhoseThreadWaits) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("megalith-status-observer-{}", ::getpid());
  std::filesystem::create_directories(folder);
  launch::StatusPage page(launch::page_file(folder, 0), 0);
  StatusObserver observer(page);
  const std::string tensor = "tensor", data = "data";
  const Wait outside{"barrier", &data, 1, {}};
  observer.wait_begins(outside);
  const auto between = launch::look_at_ranks(folder).front().lanes;
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(launch::describe(between[0]), "between ops, in barrier over data with rank 1");
  observer.wait_ends(outside);
  EXPECT_TRUE(launch::look_at_ranks(folder).front().lanes.empty());

  const Op forward{ops::forward, 2, 0, Lane::compute, {}}, norm{ops::gradient_norm, 5, kNoMicro, Lane::net, {}};
  observer.op_begins(forward);
  observer.wait_begins({"all_gather", &tensor, 3, {}});
  std::thread net([&] {
    observer.op_begins(norm);
    observer.wait_begins({"all_reduce", &data, -1, {}});
  });
  net.join();
  auto lanes = launch::look_at_ranks(folder).front().lanes;
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(launch::describe(lanes[0]), "forward of block 2, micro-batch 0, in all_gather over tensor with rank 3");
  EXPECT_EQ(launch::describe(lanes[1]), "gradient norm of block 5, in all_reduce over data");

  observer.wait_ends({"all_gather", &tensor, 3, {}});
  EXPECT_EQ(launch::describe(launch::look_at_ranks(folder).front().lanes[0]), "forward of block 2, micro-batch 0");
  observer.op_ends(forward);
  EXPECT_EQ(launch::look_at_ranks(folder).front().lanes.size(), 1u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace megalith
