#include "memory/spill_folder.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>

#include "base/error.h"
#include "memory/disk_support.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

UserError refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error;
  }
  return UserError({"", "nothing was refused", "", "", ""});
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

TEST(SpillFolder, ASecondRunIsRefusedByName) {
  ScratchFolder scratch;
  SpillFolder first(scratch.path() / "spill");
  UserError error = refusal([&] { SpillFolder second(scratch.path() / "spill"); });
  EXPECT_EQ(error.parts.key, "memory.spill");
  EXPECT_NE(error.parts.got.find((scratch.path() / "spill").string()), std::string::npos) << error.what();
  EXPECT_NE(error.parts.got.find("process " + std::to_string(::getpid())), std::string::npos) << error.what();
}

TEST(SpillFolder, IsFreeAgainAfterARunThatWasKilled) {
  ScratchFolder scratch;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    SpillFolder folder(scratch.path() / "spill", {.uring = false, .direct = false});
    auto file = folder.make("moments", 8 << 20);
    std::ofstream(scratch.path() / "spill" / ("half-made" + std::string(kSpillSuffix))) << "left behind";
    [[maybe_unused]] ssize_t n = ::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(refusal([&] { SpillFolder second(scratch.path() / "spill"); }).parts.key, "memory.spill");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::ofstream(scratch.path() / "spill" / "somebody's notes.txt") << "not ours";
  {
    SpillFolder folder(scratch.path() / "spill");
    for (const std::string& name : names_in(folder.path()))
      EXPECT_FALSE(name.ends_with(kSpillSuffix)) << name;
  }
  EXPECT_EQ(names_in(scratch.path() / "spill"), std::vector<std::string>{"somebody's notes.txt"});
}

TEST(SpillFolder, NothingIsLeftAlsoAfterAnException) {
  ScratchFolder scratch;
  try {
    SpillFolder folder(scratch.path() / "a" / "spill");
    auto file = folder.make("moments", 1 << 20);
    throw std::runtime_error("something else went wrong");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(fs::exists(scratch.path() / "a" / "spill"));
}

TEST(SpillFolder, FilesTakeTheirSpaceAtOnceAndHaveNoName) {
  ScratchFolder scratch;
  SpillFolder folder(scratch.path());
  const size_t before = names_in(scratch.path()).size();
  auto file = folder.make("moments", (3 << 20) + 1);
  EXPECT_EQ(file->bytes(), (3 << 20) + kDiskAlign);
  EXPECT_EQ(names_in(scratch.path()).size(), before);
  struct stat status {};
  ASSERT_EQ(::fstat(file->descriptor(), &status), 0);
  EXPECT_EQ(status.st_size, file->bytes());
  EXPECT_GE(status.st_blocks * 512, file->bytes());
}

TEST(SpillFolder, SaysWhatIsNeededAndWhatIsFree) {
  ScratchFolder scratch;
  SpillFolder folder(scratch.path());
  EXPECT_NO_THROW(folder.require(1 << 20));
  UserError error = refusal([&] { folder.require(int64_t{1} << 60); });
  EXPECT_EQ(error.parts.key, "memory.spill");
  EXPECT_NE(std::string(error.what()).find("a disk with 1073741824 GiB free"), std::string::npos)
      << error.what();
  error = refusal([&] { folder.make("moments", int64_t{1} << 42); });
  EXPECT_EQ(error.parts.key, "memory.spill");
  EXPECT_NE(error.parts.expected.find("4096 GiB"), std::string::npos) << error.what();
}

TEST(SpillFolder, AFileIsNoFolder) {
  ScratchFolder scratch;
  std::ofstream(scratch.path() / "file") << "x";
  EXPECT_EQ(refusal([&] { SpillFolder folder(scratch.path() / "file"); }).parts.key, "memory.spill");
  EXPECT_EQ(refusal([&] { SpillFolder folder(scratch.path() / "file" / "below"); }).parts.key,
            "memory.spill");
}

TEST(IoMethod, IsTheFastestThatWorksAndSaysWhyNotAFaster) {
  ScratchFolder scratch;
  IoMethod best = choose_io_method(scratch.path());
  EXPECT_EQ(best.why.empty(), best.uring && best.direct) << best.why;
  IoMethod threads = choose_io_method(scratch.path(), {.uring = false});
  EXPECT_FALSE(threads.uring);
  IoMethod buffered = choose_io_method(scratch.path(), {.uring = false, .direct = false});
  EXPECT_EQ(describe(buffered), "threads, through the page cache");
  EXPECT_TRUE(names_in(scratch.path()).empty());
}

// As in containers: the kernel has io_uring, but this process may not use it.
void forbid_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    ::_exit(2);
}

TEST(IoMethod, IsThreadsWhereIoUringIsForbidden) {
  ScratchFolder scratch;
  pid_t child = ::fork();
  if (child == 0) {
    forbid_io_uring();
    IoMethod way = choose_io_method(scratch.path());
    const bool said = way.why.find("io_uring: cannot start: Operation not permitted") != std::string::npos;
    ::_exit(!way.uring && said ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this machine lets nobody set a seccomp filter";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(IoMethod, AFolderThatCannotBeWrittenIsTheUsersMistake) {
  UserError error = refusal([&] { choose_io_method("/proc/self"); });
  EXPECT_EQ(error.parts.key, "memory.spill");
  EXPECT_NE(std::string(error.what()).find("/proc/self"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace megalith
