#include "memory/disk_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "memory/disk_support.h"

namespace megalith {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t open_files() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

// Number of our threads. The kernel's own workers of a ring are not counted, as they come and go.
int threads_running() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += !name.starts_with("iou-");
  }
  return count;
}

struct Place {
  IoMethod way;
  const char* under;  // nullptr: the disk that the tests run on
};

void PrintTo(const Place& place, std::ostream* out) {
  *out << way_name(place.way) << " in " << (place.under ? place.under : "the folder of the tests");
}

class DiskQueues : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const auto [way, under] = GetParam();
    if (under && ::access(under, W_OK) != 0) GTEST_SKIP() << under << " cannot be written";
    folder_ = under ? std::make_unique<ScratchFolder>(under) : std::make_unique<ScratchFolder>();
    if (std::string why = obstacle(folder_->path(), way); !why.empty()) GTEST_SKIP() << why;
  }
  const IoMethod& way() const { return GetParam().way; }
  std::unique_ptr<SpillFile> file(int64_t bytes, const std::string& name = "test") {
    return std::make_unique<SpillFile>(folder_->path() / name, bytes, way());
  }
  std::unique_ptr<ScratchFolder> folder_;
};

// Extents of random lengths are written and read in random order with several tickets open. Then some are written again.
TEST_P(DiskQueues, GiveBackWhatWasWrittenInAnyOrder) {
  std::mt19937 random(7);
  for (int depth : {1, 3, 16}) {
    struct Extent {
      int64_t offset;
      DiskBuffer kept, read;
      DiskQueue::Ticket ticket = 0;
    };
    std::vector<Extent> extents;
    int64_t end = 0;
    for (int i = 0; i < 12; i++) {
      const int64_t length = kDiskAlign * (1 + static_cast<int64_t>(random() % 700));  // up to 2.7 MiB
      extents.push_back({end, DiskBuffer(length), DiskBuffer(length)});
      extents.back().kept.fill(random());
      end += (length + kSpillChunk - 1) / kSpillChunk * kSpillChunk;
    }
    auto spill = file(end, "round-trip-" + std::to_string(depth));
    auto queue = make_disk_queue(way(), depth);
    for (int round = 0; round < 3; round++) {
      std::shuffle(extents.begin(), extents.end(), random);
      for (size_t i = 0; i < extents.size(); i++) {
        if (round > 0 && i % 2) continue;
        if (round > 0) extents[i].kept.fill(random());
        extents[i].ticket = queue->write(*spill, extents[i].offset, extents[i].kept.span());
      }
      std::shuffle(extents.begin(), extents.end(), random);
      for (Extent& extent : extents) queue->wait(extent.ticket);
      for (Extent& extent : extents) {
        extent.read.wipe();
        extent.ticket = queue->read(*spill, extent.offset, extent.read.span());
      }
      if (round == 1)
        queue->wait_all();
      else
        for (Extent& extent : extents) queue->wait(extent.ticket);
      for (const Extent& extent : extents) EXPECT_TRUE(extent.kept == extent.read) << "at " << extent.offset;
    }
  }
}

TEST_P(DiskQueues, LeaveChecksToACallerWhoWantsThem) {
  auto spill = file(2 * kMiB);
  DiskBuffer kept(kMiB), read(kMiB);
  kept.fill(3);
  auto queue = make_disk_queue(way(), 4);
  spill->remember(0, kept.span());
  queue->wait(queue->write(*spill, 0, kept.span(), DiskQueue::Checks::caller));
  kept.span()[17] ^= std::byte{1};  // the disk has this change, the checksum does not
  queue->wait(queue->write(*spill, 0, kept.span(), DiskQueue::Checks::caller));
  queue->wait(queue->read(*spill, 0, read.span(), DiskQueue::Checks::caller));
  EXPECT_TRUE(read == kept);
  EXPECT_THROW(spill->check(0, read.span()), Fault);
  EXPECT_THROW(queue->wait(queue->read(*spill, 0, read.span())), Fault);
}

TEST_P(DiskQueues, ReadsAndWritesOfOneQueueGoTogether) {
  auto spill = file(16 * kMiB);
  DiskBuffer first(8 * kMiB), second(8 * kMiB), read(8 * kMiB);
  first.fill(1);
  second.fill(2);
  auto queue = make_disk_queue(way(), 4);
  queue->wait(queue->write(*spill, 0, first.span()));
  auto reading = queue->read(*spill, 0, read.span());
  auto writing = queue->write(*spill, 8 * kMiB, second.span());
  queue->wait(writing);
  queue->wait(reading);
  EXPECT_TRUE(read == first);
  queue->wait(queue->read(*spill, 8 * kMiB, read.span()));
  EXPECT_TRUE(read == second);
}

TEST_P(DiskQueues, EveryThreadWithAQueueOfItsOwn) {
  constexpr int kThreads = 6;
  auto spill = file(kThreads * 4 * kMiB);
  std::vector<std::thread> threads;
  std::vector<int> right(kThreads, 0);
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      auto queue = make_disk_queue(way(), 3);
      DiskBuffer kept(3 * kMiB + kDiskAlign), read(3 * kMiB + kDiskAlign);
      for (int round = 0; round < 5; round++) {
        kept.fill(static_cast<uint64_t>(100 * t + round));
        queue->wait(queue->write(*spill, t * 4 * kMiB, kept.span()));
        read.wipe();
        queue->wait(queue->read(*spill, t * 4 * kMiB, read.span()));
        right[static_cast<size_t>(t)] += kept == read;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(kThreads, 5));
}

// One lane reads what another lane wrote, as updates and prefetches do.
TEST_P(DiskQueues, AnotherQueueReadsWhatOneWrote) {
  auto spill = file(4 * kMiB);
  DiskBuffer kept(4 * kMiB), read(4 * kMiB);
  kept.fill(3);
  std::thread([&] {
    auto queue = make_disk_queue(way(), 4);
    queue->wait(queue->write(*spill, 0, kept.span()));
  }).join();
  auto queue = make_disk_queue(way(), 4);
  queue->wait(queue->read(*spill, 0, read.span()));
  EXPECT_TRUE(kept == read);
}

TEST_P(DiskQueues, AFlippedBitIsCaught) {
  auto spill = file(4 * kMiB);
  DiskBuffer kept(4 * kMiB), read(4 * kMiB);
  kept.fill(4);
  auto queue = make_disk_queue(way(), 4);
  queue->wait(queue->write(*spill, 0, kept.span()));
  // Changes the file through another descriptor: the file has no name any more.
  const int64_t page = 2 * kMiB + 3 * kDiskAlign;
  kept.span()[static_cast<size_t>(page) + 77] ^= std::byte{0x10};
  const std::string outside = "/proc/self/fd/" + std::to_string(spill->descriptor());
  int other = ::open(outside.c_str(), O_WRONLY);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::pwrite(other, kept.span(page, kDiskAlign).data(), kDiskAlign, page), kDiskAlign);
  ::fdatasync(other);
  ::close(other);
  const std::string fault = fault_of([&] { queue->wait(queue->read(*spill, 0, read.span())); });
  EXPECT_NE(fault.find("chunk at byte 2097152: the data read differs from the data written"), std::string::npos) << fault;
  EXPECT_NE(fault.find(spill->path().string()), std::string::npos) << fault;
  // The other chunks are still valid, and the queue still works.
  EXPECT_NO_THROW(queue->wait(queue->read(*spill, 0, read.span(0, 2 * kMiB))));
  EXPECT_NO_THROW(queue->wait(queue->read(*spill, 3 * kMiB, read.span(0, kMiB))));
}

// Correct bytes in the wrong place must be detected.
TEST_P(DiskQueues, AMisplacedWriteIsCaught) {
  auto spill = file(2 * kMiB);
  DiskBuffer kept(2 * kMiB), read(2 * kMiB);
  kept.fill(5);
  auto queue = make_disk_queue(way(), 2);
  queue->wait(queue->write(*spill, 0, kept.span()));
  ASSERT_EQ(::pwrite(spill->descriptor(), kept.span().data(), kMiB, kMiB), kMiB);
  EXPECT_NE(fault_of([&] { queue->wait(queue->read(*spill, 0, read.span())); }).find("chunk at byte 1048576"),
            std::string::npos);
}

TEST_P(DiskQueues, AFileCutShortIsSaid) {
  auto spill = file(3 * kMiB);
  DiskBuffer kept(3 * kMiB), read(3 * kMiB);
  kept.fill(6);
  auto queue = make_disk_queue(way(), 4);
  queue->wait(queue->write(*spill, 0, kept.span()));
  for (int64_t length : {2 * kMiB, kMiB + kDiskAlign, kMiB + 100, int64_t{0}}) {
    ASSERT_EQ(::ftruncate(spill->descriptor(), length), 0);
    const std::string fault = fault_of([&] { queue->wait(queue->read(*spill, 0, read.span())); });
    EXPECT_NE(fault.find("cut short"), std::string::npos) << fault;
    EXPECT_NE(fault.find(spill->path().string()), std::string::npos) << fault;
  }
}

TEST_P(DiskQueues, WhatIsInFlightEndsBeforeTheQueueDoes) {
  auto spill = file(32 * kMiB);
  DiskBuffer kept(32 * kMiB), read(32 * kMiB);
  kept.fill(8);
  make_disk_queue(way(), 8)->write(*spill, 0, kept.span());  // dropped or written: no call waits for it
  kept.fill(9);
  auto queue = make_disk_queue(way(), 8);
  queue->wait(queue->write(*spill, 0, kept.span()));
  queue->wait(queue->read(*spill, 0, read.span()));
  EXPECT_TRUE(kept == read);
}

TEST_P(DiskQueues, LeaveNoDescriptorsAndNoThreads) {
  auto once = [&] {
    auto spill = file(2 * kMiB);
    DiskBuffer kept(2 * kMiB);
    kept.fill(10);
    auto queue = make_disk_queue(way(), 4);
    queue->wait(queue->write(*spill, 0, kept.span()));
    ::ftruncate(spill->descriptor(), kMiB);
    EXPECT_THROW(queue->wait(queue->read(*spill, 0, kept.span())), Fault);
  };
  once();
  const int64_t files = open_files(), threads = threads_running();
  for (int i = 0; i < 20; i++) once();
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(threads_running(), threads);
}

std::vector<Place> places() {
  std::vector<Place> all;
  for (const IoMethod& way : all_ways())
    for (const char* under : {static_cast<const char*>(nullptr), "/dev/shm"}) all.push_back({way, under});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, DiskQueues, testing::ValuesIn(places()), [](const auto& place) {
  return way_name(place.param.way) + (place.param.under ? "InMemory" : "OnDisk");
});

TEST(DiskQueue, RefusesWhatIsNotAligned) {
  ScratchFolder folder;
  SpillFile file(folder.path() / "test", 4 * kMiB, {});
  DiskBuffer buffer(2 * kMiB);
  auto queue = make_disk_queue({}, 2);
  EXPECT_THROW(queue->write(file, kDiskAlign, buffer.span()), Bug);           // not at the beginning of a chunk
  EXPECT_THROW(queue->write(file, 0, buffer.span(0, 100)), Bug);              // length
  EXPECT_THROW(queue->write(file, 0, buffer.span(64, kDiskAlign)), Bug);      // address
  EXPECT_THROW(queue->write(file, 3 * kMiB, buffer.span(0, 2 * kMiB)), Bug);  // beyond the end
  EXPECT_THROW(queue->read(file, 0, buffer.span()), Bug);                     // never written
  queue->wait(queue->write(file, 0, buffer.span(0, kMiB + kDiskAlign)));
  EXPECT_THROW(queue->read(file, 0, buffer.span()), Bug);  // longer than it was written
  EXPECT_NO_THROW(queue->wait(queue->read(file, 0, buffer.span(0, kMiB + kDiskAlign))));
  EXPECT_NO_THROW(queue->wait(queue->write(file, 0, buffer.span(0, 0))));
}

}  // namespace
}  // namespace megalith
