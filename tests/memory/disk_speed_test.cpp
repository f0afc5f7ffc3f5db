#include "memory/disk_speed.h"

#include "memory/disk_support.h"

namespace megalith {
namespace {

TEST(DiskSpeed, IsMeasuredAndLeavesNothing) {
  ScratchFolder folder;
  const DiskSpeed speed = measure_disk(folder.path(), choose_io_method(folder.path()), 0.05);
  EXPECT_GT(speed.read, 0);
  EXPECT_GT(speed.write, 0);
  EXPECT_GT(speed.mixed, 0);
  EXPECT_GT(speed.kernel_s, 0);
  EXPECT_LE(speed.kernel_s, speed.core_s);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DiskSpeed, IsRememberedByFileSystem) {
  ScratchFolder one, other;
  EXPECT_EQ(disk_identity(one.path()), disk_identity(other.path()));
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm to compare with";
  EXPECT_NE(disk_identity(one.path()), disk_identity("/dev/shm"));
}

}  // namespace
}  // namespace megalith
