#include "engine/stream_trial.h"

#include "memory/allocator.h"
#include "memory/disk_support.h"

namespace megalith {
namespace {

TEST(StreamTrial, SaysHowLongEachOpTakesAndLeavesNothing) {
  install_allocator();
  ScratchFolder folder;
  const StreamSpeeds speeds = try_streams(folder.path(), choose_io_method(folder.path()));
  for (const TransferSpeed& op : {speeds.load, speeds.offload_gradient, speeds.load_updated, speeds.load_updated_scarce}) {
    EXPECT_GT(op.wait_s, 0);
    EXPECT_GT(op.bytes_per_s, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace megalith
