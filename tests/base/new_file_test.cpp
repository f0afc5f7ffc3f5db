#include "base/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "temp_dir.h"

namespace megalith {
namespace {

mode_t mode_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class Umask {
 public:
  explicit Umask(mode_t mask) : former_(::umask(mask)) {}
  ~Umask() { ::umask(former_); }

 private:
  mode_t former_;
};

TEST(NewFile, NamesDoNotRepeat) {
  std::set<std::string> names;
  for (int i = 0; i < 100; i++) names.insert(random_hex(8));
  EXPECT_EQ(names.size(), 100u);
  EXPECT_EQ(names.begin()->size(), 16u);
}

TEST(NewFile, DoesNotFollowALink) {
  TempDir dir;
  dir.write("victim", "precious");
  std::filesystem::create_symlink(dir / "victim", dir / "link");
  std::filesystem::create_symlink(dir / "nothing", dir / "dangling");
  for (const char* name : {"link", "dangling", "victim"}) {
    EXPECT_EQ(create_file(dir / name), -1) << name;
    EXPECT_EQ(errno, EEXIST) << name;
  }
  EXPECT_EQ(open_or_create_file(dir / "link"), -1);
  EXPECT_EQ(open_or_create_file(dir / "dangling"), -1);
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_or_create_file(dir / "pipe"), -1) << "not a regular file";
  EXPECT_FALSE(std::filesystem::exists(dir / "nothing"));
  EXPECT_EQ(dir.read("victim"), "precious");
}

TEST(NewFile, TheUmaskDecidesWhoReads) {
  TempDir dir;
  Umask umask(002);
  const int shared = create_file(dir / "shared"), secret = create_file(dir / "secret", kPrivateMode);
  EXPECT_EQ(mode_of(dir / "shared"), 0664u);
  EXPECT_EQ(mode_of(dir / "secret"), 0600u);
  ::close(shared);
  ::close(secret);
  write_file_atomically(dir / "result", "x");
  EXPECT_EQ(mode_of(dir / "result"), 0664u);
}

TEST(NewFile, AtomicFilesHaveNamesThatNobodyCanPlant) {
  TempDir dir;
  dir.write("victim", "precious");
  std::filesystem::create_symlink(dir / "victim", dir / fmt::format("f.{}.tmp", ::getpid()));
  write_file_atomically(dir / "f", "new");
  EXPECT_EQ(dir.read("victim"), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "f"));
  AtomicFile first(dir / "g"), second(dir / "g");  // two writers of one process do not share a file
  first.put("first");
  first.end();
  second.put("2");
  second.end();
  first.give_name();
  EXPECT_EQ(dir.read("g"), "first");
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("g.")) continue;
    EXPECT_TRUE(name.ends_with(".tmp") && name.size() == std::string("g.0123456789abcdef.tmp").size()) << name;
  }
}

TEST(NewFile, APrivateFolderIsThisUsersAlone) {
  TempDir dir;
  Umask umask(0);
  make_private_folder(dir / "folder");
  EXPECT_EQ(mode_of(dir / "folder"), 0700u);
  EXPECT_NO_THROW(make_private_folder(dir / "folder")) << "it is there already";
  EXPECT_TRUE(is_private_folder(dir / "folder"));
  std::filesystem::create_directory(dir / "open");
  EXPECT_FALSE(is_private_folder(dir / "open"));
  EXPECT_THROW(make_private_folder(dir / "open"), Fault);
  std::filesystem::create_directory_symlink(dir / "folder", dir / "link");
  EXPECT_THROW(make_private_folder(dir / "link"), Fault);
  EXPECT_THROW(make_private_folder(dir / "none/folder"), Fault);
  if (::geteuid() == 0) {
    make_private_folder(dir / "theirs");
    ASSERT_EQ(::chown((dir / "theirs").c_str(), 12345, 12345), 0);
    EXPECT_THROW(make_private_folder(dir / "theirs"), Fault);
  }
}

}  // namespace
}  // namespace megalith
