#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

template <class Read>
std::string complaint(const Read& read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

// No process writes to the pipe, so a reader that opens it in the usual way would wait forever.
TEST(Files, PipesAndDevicesAreRefusedAtOnce) {
  TempDir dir;
  const std::filesystem::path pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, std::filesystem::path("/dev/zero"), std::filesystem::path("/dev/null")}) {
    const std::string says =
        path.string() + ": expected a regular file, got a pipe or a device; write its output to a file first";
    EXPECT_EQ(complaint([&] { read_file(path); }), says);
    EXPECT_EQ(complaint([&] { open_regular_file(path); }), says);
    EXPECT_EQ(complaint([&] { MappedFile map(path); }), says);
  }
  EXPECT_NE(complaint([&] { read_file(dir.path()); }).find("cannot read: Is a directory"), std::string::npos);
  EXPECT_NE(complaint([&] { read_file(dir.path() / "none"); }).find("cannot read: No such file"), std::string::npos);
}

// A shell gives /dev/fd/63 for <(command).
TEST(Files, APipeThatTheProcessWasStartedWithIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "model: x", 8), 8);
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "model: x");
  ::close(ends[0]);
  const int zero = ::open("/dev/zero", O_RDONLY);
  EXPECT_NE(complaint([&] { read_file("/dev/fd/" + std::to_string(zero)); }).find("a pipe or a device"), std::string::npos);
  ::close(zero);
}

}  // namespace
}  // namespace megalith
