// Disks that are full, fail or move data partly: real ones if this machine allows them, otherwise an engine that
// simulates them.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>

#include "base/error.h"
#include "memory/disk_support.h"

namespace megalith {
namespace {

constexpr int64_t kMiB = 1 << 20;

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class Mounted {
 public:
  ~Mounted() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
    if (!device_.empty()) run("losetup -d " + device_);
  }
  // Returns an empty text, or why it failed.
  std::string tmpfs(const std::filesystem::path& at, const char* size) {
    at_ = at;
    mounted_ = ::mount("tmpfs", at.c_str(), "tmpfs", 0, size) == 0;
    return mounted_ ? "" : std::string("cannot mount: ") + std::strerror(errno);
  }
  std::string loop(const std::filesystem::path& at, const std::filesystem::path& image, int64_t bytes) {
    at_ = at;
    std::ofstream(image).close();
    std::filesystem::resize_file(image, static_cast<uintmax_t>(bytes));
    if (!run("mkfs.ext4 -q -F -O ^has_journal " + image.string())) return "no mkfs.ext4";
    FILE* out = ::popen(("losetup -f --show " + image.string() + " 2>/dev/null").c_str(), "r");
    char name[64] = {};
    if (out && std::fgets(name, sizeof name, out)) device_ = std::string(name, std::strcspn(name, "\n"));
    if (out) ::pclose(out);
    if (device_.empty()) return "no loop device to be had";
    mounted_ = ::mount(device_.c_str(), at.c_str(), "ext4", 0, "errors=continue") == 0;
    return mounted_ ? "" : std::string("cannot mount: ") + std::strerror(errno);
  }

 private:
  std::filesystem::path at_;
  std::string device_;
  bool mounted_ = false;
};

class DiskFaults : public testing::TestWithParam<IoMethod> {};

TEST_P(DiskFaults, AFullDiskIsNamed) {
  ScratchFolder folder;
  Mounted mounted;
  if (std::string why = mounted.tmpfs(folder.path(), "size=8m"); !why.empty()) GTEST_SKIP() << why;
  if (std::string why = obstacle(folder.path(), GetParam()); !why.empty()) GTEST_SKIP() << why;
  EXPECT_THROW(SpillFile(folder.path() / "large", 9 * kMiB, GetParam()), UserError);
  SpillFile file(folder.path() / "moments", 4 * kMiB, GetParam());
  DiskBuffer kept(4 * kMiB);
  kept.fill(1);
  auto queue = make_disk_queue(GetParam(), 3);
  queue->wait(queue->write(file, 0, kept.span()));
  // Give up the allocated space, as on a file system that cannot reserve, and let another file take it.
  ASSERT_EQ(::ftruncate(file.descriptor(), 0), 0);
  ASSERT_EQ(::ftruncate(file.descriptor(), file.bytes()), 0);
  SpillFile other(folder.path() / "other", 7 * kMiB, {});
  const std::string fault = fault_of([&] { queue->wait(queue->write(file, 0, kept.span())); });
  EXPECT_NE(fault.find("No space left"), std::string::npos) << fault;
  EXPECT_NE(fault.find("cannot write"), std::string::npos) << fault;
  EXPECT_NE(fault.find("the disk of " + folder.path().string() + " is full"), std::string::npos) << fault;
}

// A loop device with a truncated image: the kernel answers reads beyond its end with EIO.
TEST_P(DiskFaults, AFailingDiskIsSaid) {
  ScratchFolder folder, images;
  Mounted mounted;
  const auto image = images.path() / "image";
  if (std::string why = mounted.loop(folder.path(), image, 64 * kMiB); !why.empty()) GTEST_SKIP() << why;
  const IoMethod& way = GetParam();
  if (!way.direct) GTEST_SKIP() << "the page cache hides the disk";
  if (std::string why = obstacle(folder.path(), way); !why.empty()) GTEST_SKIP() << why;
  SpillFile file(folder.path() / "moments", 8 * kMiB, way);
  DiskBuffer kept(8 * kMiB), read(8 * kMiB);
  kept.fill(2);
  auto queue = make_disk_queue(way, 4);
  queue->wait(queue->write(file, 0, kept.span()));
  queue->wait(queue->read(file, 0, read.span()));
  ASSERT_TRUE(kept == read);
  ASSERT_EQ(::truncate(image.c_str(), kMiB), 0);
  const std::string fault = fault_of([&] { queue->wait(queue->read(file, 0, read.span())); });
  EXPECT_NE(fault.find("Input/output error"), std::string::npos) << fault;
  EXPECT_NE(fault.find("cannot read"), std::string::npos) << fault;
  EXPECT_NE(fault.find(file.path().string()), std::string::npos) << fault;
}

INSTANTIATE_TEST_SUITE_P(Ways, DiskFaults, testing::ValuesIn(all_ways()),
                         [](const auto& way) { return way_name(way.param); });

// Gives prepared answers, one per transfer. After the last one it does the transfers.
class PlayedEngine : public DiskEngine {
 public:
  explicit PlayedEngine(std::deque<int64_t> answers) : answers_(std::move(answers)) {}
  void start(const Transfer& t, uint64_t tag) override {
    int64_t most = t.length;
    if (!answers_.empty()) {
      most = answers_.front();
      answers_.pop_front();
    }
    if (most > 0) {
      const auto n = static_cast<size_t>(std::min(most, t.length));
      most =
          t.write ? ::pwrite(t.descriptor, t.data, n, t.offset) : ::pread(t.descriptor, t.data, n, t.offset);
    }
    done_.push_back({tag, most});
  }
  void submit() override {}
  Done finish() override {
    Done last = done_.back();  // out of order, like disks
    done_.pop_back();
    return last;
  }

 private:
  std::deque<int64_t> answers_;
  std::deque<Done> done_;
};

struct PlayedDisk : testing::Test {
  std::unique_ptr<DiskQueue> queue(std::deque<int64_t> answers) {
    return std::make_unique<DiskQueue>(std::make_unique<PlayedEngine>(std::move(answers)), 4);
  }
  ScratchFolder folder;
  SpillFile file{folder.path() / "moments", 4 * kMiB, {}};
  DiskBuffer kept{4 * kMiB}, read{4 * kMiB};
};

TEST_F(PlayedDisk, InterruptedAndShortTransfersAreCompleted) {
  kept.fill(3);
  auto writing = queue({-EINTR, -EAGAIN, kDiskAlign, 3 * kDiskAlign + 5, 512 << 10, 7 * kDiskAlign, -EINTR});
  writing->wait(writing->write(file, 0, kept.span()));
  auto reading = queue({5 * kDiskAlign + 1, -EAGAIN, -EINTR, 900 << 10, kDiskAlign, 2 * kDiskAlign});
  reading->wait(reading->read(file, 0, read.span()));
  EXPECT_TRUE(kept == read);
}

TEST_F(PlayedDisk, AFailedWriteIsSaidOnItsOwnTicketOnly) {
  kept.fill(4);
  auto q = queue({kMiB, -EIO});
  auto good = q->write(file, 0, kept.span(0, kMiB));
  auto bad = q->write(file, kMiB, kept.span(kMiB, kMiB));
  const std::string fault = fault_of([&] { q->wait(bad); });
  EXPECT_NE(fault.find("cannot write 1.00 MiB at byte 1048576: Input/output error"), std::string::npos) << fault;
  EXPECT_NO_THROW(q->wait(good));
  EXPECT_NO_THROW(q->wait_all());
}

TEST_F(PlayedDisk, WaitAllEndsEverythingThenThrowsTheFirst) {
  kept.fill(5);
  auto q = queue({kMiB, -EIO, kMiB, -EBADF});
  for (int64_t i = 0; i < 4; i++) q->write(file, i * kMiB, kept.span(i * kMiB, kMiB));
  const std::string fault = fault_of([&] { q->wait_all(); });
  EXPECT_NE(fault.find("Input/output error"), std::string::npos) << fault;
  EXPECT_NO_THROW(q->wait_all());
  q->wait(q->read(file, 0, read.span(0, kMiB)));
}

TEST_F(PlayedDisk, ADiskThatTakesNothingDoesNotHangTheRun) {
  auto q = queue({0});
  EXPECT_NE(fault_of([&] { q->wait(q->write(file, 0, kept.span(0, kMiB))); }).find("accepts no more bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace megalith
