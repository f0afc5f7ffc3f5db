#include "base/atomic_file.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "base/files.h"
#include "temp_dir.h"

namespace megalith {
namespace {

int64_t entries(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(AtomicFile, IsThereWholeOrNotAtAll) {
  TempDir dir;
  write_file_atomically(dir.path() / "f", "old");
  const std::string large(1 << 20, 'x');
  {
    AtomicFile file(dir.path() / "f");
    file.put("small");
    file.put(large);
    file.put(uint8_t{65});
    file.end();
    EXPECT_EQ(read_file(dir.path() / "f"), "old");
    file.give_name();
  }
  EXPECT_EQ(read_file(dir.path() / "f"), "small" + large + "A");
  { AtomicFile left(dir.path() / "f"); }
  EXPECT_EQ(read_file(dir.path() / "f").size(), large.size() + 6);
  EXPECT_EQ(entries(dir.path()), 1) << "what was not named is gone";
}

TEST(AtomicFile, IsWrittenByOneProcessIfItIsAbsent) {
  TempDir dir;
  EXPECT_TRUE(write_file_if_absent(dir.path() / "f", "first"));
  EXPECT_FALSE(write_file_if_absent(dir.path() / "f", "second"));
  EXPECT_EQ(read_file(dir.path() / "f"), "first");
  EXPECT_EQ(entries(dir.path()), 1) << "what was not named is gone";
}

TEST(AtomicFile, TellsWhyItCannotBeWritten) {
  TempDir dir;
  try {
    AtomicFile file(dir.path() / "none/f");
    FAIL() << "there is no such folder";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()), (dir.path() / "none/f").string() + ": cannot write: No such file or directory");
  }
  std::filesystem::create_directory(dir.path() / "folder");
  EXPECT_THROW(write_file_atomically(dir.path() / "folder", "x"), UserError);
  EXPECT_EQ(entries(dir.path()), 1);
}

TEST(AtomicFile, AFullDiskIsAFault) {
  try {
    throw_cannot("write", "f", ENOSPC);
  } catch (const Fault& error) {
    EXPECT_EQ(std::string(error.what()), "f: cannot write: No space left on device");
  }
  for (int error : {ENOSPC, EIO, EDQUOT}) EXPECT_TRUE(is_machine_fault(error));
  for (int error : {EACCES, ENOENT, EROFS, ENOTDIR}) EXPECT_FALSE(is_machine_fault(error));
}

}  // namespace
}  // namespace megalith
