#include "launch/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "base/new_file.h"
#include "launch/process.h"
#include "launch/published.h"

namespace megalith::launch {

// `magic` is written last, so a reader never accepts a page that is only partly initialized.
struct StatusPage::Layout {
  std::atomic<uint64_t> magic;
  std::atomic<int32_t> rank, pid;
  std::atomic<uint64_t> started;
  std::atomic<int64_t> step, checkpoint;
  std::atomic<double> step_predicted_s;
  alignas(64) Published<RankStatus> status;
  struct alignas(64) LanePart {
    Published<LaneStatus> op;
  };
  std::array<LanePart, kLanes> lanes;
};

namespace {

constexpr uint64_t kMagic = 0x4d45'4741'5041'4745 + sizeof(StatusPage::Layout);  // changes with the layout
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const size_t length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, N - length);
}

StatusPage::Layout* construct(void* memory, int rank) {
  auto* page = new (memory) StatusPage::Layout{};
  page->rank = rank;
  page->pid = ::getpid();
  if (auto self = process_stat(::getpid())) page->started = self->started;
  page->checkpoint = -1;
  page->status.write({});
  for (auto& lane : page->lanes) lane.op.write({});
  page->magic.store(kMagic, std::memory_order_release);
  return page;
}

void* map_shared(const std::filesystem::path& file) {
  ::unlink(file.c_str());  // an old page of the same name; its readers keep their mapping
  const int fd = create_file(file, kPrivateMode);
  // Allocates the space now: on a full file system the first write would otherwise fail with SIGBUS.
  int error = fd < 0 ? errno : ::posix_fallocate(fd, 0, sizeof(StatusPage::Layout));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = ::mmap(nullptr, sizeof(StatusPage::Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  if (fd >= 0) ::close(fd);
  if (error != 0) throw Fault(fmt::format("cannot create the status page {}: {}", file.string(), std::strerror(error)));
  return memory;
}

}  // namespace

std::string_view name(RankState state) {
  switch (state) {
    case RankState::starting: return "starting";
    case RankState::training: return "training";
    case RankState::saving: return "saving";
    case RankState::stopping: return "stopping";
    case RankState::finished: return "finished";
    case RankState::failed: return "failed";
  }
  return "unknown state";
}

double monotonic_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

StatusPage::StatusPage() {
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  page_ = construct(memory, 0);
}

void StatusPage::share(const std::filesystem::path& file, int rank) {
  void* memory = map_shared(file);
  ::munmap(page_, sizeof(Layout));
  page_ = construct(memory, rank);
}

StatusPage::~StatusPage() { ::munmap(page_, sizeof(Layout)); }

void StatusPage::state(RankState state) {
  std::lock_guard lock(mutex_);
  status_.state = state;
  page_->status.write(status_);
}

void StatusPage::end(ExitCode code, std::string_view message) {
  std::lock_guard lock(mutex_);
  status_.state = message.empty() ? RankState::finished : RankState::failed;
  status_.code = static_cast<int32_t>(code);
  status_.ended_s = monotonic_seconds();
  copy_text(status_.message, message);
  page_->status.write(status_);
}

void StatusPage::step(int64_t step, double predicted_s) {
  page_->step.store(step, std::memory_order_relaxed);
  page_->step_predicted_s.store(predicted_s, std::memory_order_relaxed);
}

void StatusPage::checkpoint(int64_t step) { page_->checkpoint.store(step, std::memory_order_relaxed); }

void StatusPage::publish(Lane lane) {
  const auto i = static_cast<size_t>(lane);
  page_->lanes[i].op.write(lanes_[i]);
}

void StatusPage::enter(const Op& op, double predicted_s) {
  LaneStatus& lane = lanes_[static_cast<size_t>(op.lane)];
  lane.entered++;
  lane.busy = 1;
  lane.kind = op.kind;
  lane.block = op.block;
  lane.micro = op.micro;
  lane.since_s = monotonic_seconds();
  lane.predicted_s = predicted_s;
  lane.exchange[0] = 0;
  lane.peers_total = 0;
  publish(op.lane);
}

void StatusPage::waiting(Lane which, std::string_view exchange, std::span<const int> peers) {
  LaneStatus& lane = lanes_[static_cast<size_t>(which)];
  if (lane.busy == 0) {
    lane = {.entered = lane.entered + 1, .busy = 2, .since_s = monotonic_seconds()};
  }
  copy_text(lane.exchange, exchange);
  lane.peers_total = static_cast<int32_t>(peers.size());
  std::copy_n(peers.begin(), std::min<size_t>(peers.size(), kPagePeers), lane.peers.begin());
  publish(which);
}

void StatusPage::arrived(Lane which) {
  LaneStatus& lane = lanes_[static_cast<size_t>(which)];
  lane.exchange[0] = 0;
  lane.peers_total = 0;
  if (lane.busy == 2) lane.busy = 0;
  publish(which);
}

void StatusPage::leave(Lane which) {
  lanes_[static_cast<size_t>(which)].busy = 0;
  arrived(which);
}

std::optional<PageReading> read_page(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  void* memory = MAP_FAILED;
  if (::fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(StatusPage::Layout)))
    memory = ::mmap(nullptr, sizeof(StatusPage::Layout), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return std::nullopt;
  const auto* page = static_cast<const StatusPage::Layout*>(memory);
  std::optional<PageReading> reading;
  if (page->magic.load(std::memory_order_acquire) == kMagic) {
    reading.emplace();
    reading->rank = page->rank;
    reading->pid = page->pid;
    reading->started = page->started;
    reading->step = page->step;
    reading->checkpoint = page->checkpoint;
    reading->step_predicted_s = page->step_predicted_s;
    reading->status = page->status.read();
    for (size_t i = 0; i < kLanes; i++) reading->lanes[i] = page->lanes[i].op.read();
  }
  ::munmap(memory, sizeof(StatusPage::Layout));
  return reading;
}

}  // namespace megalith::launch
