// Bytes written in the background are in the right place, for any alignment and order. A disk that fails is reported.
#include "checkpoint/write_behind.h"

#include <signal.h>
#include <sys/resource.h>

#include <random>
#include <thread>

#include "checkpoint/support.h"

namespace megalith {
namespace {

using test::TempDir;

// Cuts a file at odd places: pieces of a few bytes, of pages, of megabytes.
std::vector<int64_t> cuts(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> out{0};
  while (out.back() < size) {
    const int64_t scale = int64_t{1} << (random() % 23);
    out.push_back(std::min(size, out.back() + 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(scale))));
  }
  return out;
}

void expect_whole(const std::filesystem::path& folder, uint32_t seed) {
  constexpr int64_t kSize = (24 << 20) + 1234;
  std::vector<std::byte> content(kSize);
  std::mt19937 random(seed);
  for (std::byte& b : content) b = static_cast<std::byte>(random());
  FileHandle file = FileHandle::create(folder / std::to_string(seed));
  file.reserve(kSize);
  const std::vector<int64_t> at = cuts(kSize, seed);
  {
    WriteBehind behind;
    const auto half = [&](size_t first) {  // writes every second piece, from a buffer that changes as soon as write()
                                           // returns
      std::vector<std::byte> buffer;
      for (size_t i = first; i + 1 < at.size(); i += 2) {
        buffer.assign(content.begin() + at[i], content.begin() + at[i + 1]);
        behind.write(file, at[i], buffer);
        std::fill(buffer.begin(), buffer.end(), std::byte{0xEE});
      }
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    behind.wait();
    behind.check();
  }
  file.sync();
  std::vector<std::byte> read(kSize);
  file.read_at(0, read);
  EXPECT_TRUE(read == content) << "seed " << seed << " in " << folder;
}

TEST(WriteBehind, PiecesThatShareAPageAndComeFromTwoThreadsAreAllThere) {
  TempDir temp;
  for (uint32_t seed = 1; seed <= 4; seed++) expect_whole(temp.path(), seed);
}

TEST(WriteBehind, WorksWhereTheFileSystemLivesInMemory) {
  std::string pattern = "/dev/shm/megalith-XXXXXX";
  if (!::mkdtemp(pattern.data())) GTEST_SKIP() << "no /dev/shm";
  expect_whole(pattern, 5);
  std::filesystem::remove_all(pattern);
}

// Another thread writes the part that fails, after write() has returned.
TEST(WriteBehind, ADiskThatFailsLaterIsAFaultOfTheNextCalls) {
  TempDir temp;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  FileHandle file = FileHandle::create(temp / "file");
  rlimit limit{4 << 20, before.rlim_max};  // simulates the end of the disk
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::vector<std::byte> bytes(16 << 20);
  std::string said, again;
  {
    WriteBehind behind;
    try {
      behind.write(file, 0, bytes);
      behind.wait();
      behind.check();
    } catch (const Fault& fault) {
      said = fault.what();
    }
    try {
      behind.write(file, 0, bytes);
    } catch (const Fault& fault) {
      again = fault.what();
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(said.find("file: cannot write: File too large"), std::string::npos) << said;
  EXPECT_EQ(said, again);
}

}  // namespace
}  // namespace megalith
