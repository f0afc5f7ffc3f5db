#include "checkpoint/write_behind.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/start_threads.h"

namespace megalith {
namespace {

constexpr size_t kPiece = 1 << 20;         // bytes of one write; measured: larger ones are not faster
constexpr size_t kBuffers = 8;             // pieces copied and not written yet
constexpr size_t kThreads = 3;             // this number of writes in flight keeps an NVMe disk busy
constexpr size_t kWorthDirect = 64 << 10;  // bytes; less goes through the page cache, which merges small writes

int64_t up_to_aligned(int64_t offset) { return (offset + kDirectAlign - 1) / kDirectAlign * kDirectAlign; }

}  // namespace

void WriteBehind::Free::operator()(std::byte* memory) const { std::free(memory); }

WriteBehind::WriteBehind() {
  constexpr size_t kHugePage = 2 << 20;  // bytes; with huge pages the kernel handles fewer pages per write
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, kBuffers * kPiece)));
  if (!memory_) throw Fault("out of memory for the buffers of a checkpoint");
  ::madvise(memory_.get(), kBuffers * kPiece, MADV_HUGEPAGE);
  for (size_t i = 0; i < kBuffers; i++) free_.push_back(memory_.get() + i * kPiece);
  threads_ = start_threads(kThreads, [this](size_t) { run(); });
}

WriteBehind::~WriteBehind() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WriteBehind::write(FileHandle& file, int64_t offset, std::span<const std::byte> bytes) {
  const int64_t end = offset + std::ssize(bytes);
  const int64_t first = up_to_aligned(offset), last = end / kDirectAlign * kDirectAlign;
  if (last - first < static_cast<int64_t>(kWorthDirect)) return file.write_at(offset, bytes);
  // A page that contains bytes of two tensors is never written directly. Each tensor adds its bytes through the page
  // cache.
  const auto part = [&](int64_t from, int64_t to) {
    return bytes.subspan(static_cast<size_t>(from - offset), static_cast<size_t>(to - from));
  };
  file.write_at(offset, part(offset, first));
  file.write_at(last, part(last, end));
  for (int64_t from = first; from < last;) {
    const int64_t to = std::min(last, from + static_cast<int64_t>(kPiece));
    std::byte* buffer = take_buffer();
    const std::span<const std::byte> source = part(from, to);
    std::memcpy(buffer, source.data(), source.size());
    {
      std::lock_guard lock(mutex_);
      todo_.push_back({&file, from, source.size(), buffer});
    }
    work_.notify_one();
    from = to;
  }
}

std::byte* WriteBehind::take_buffer() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return fault_.empty() ? !free_.empty() : idle(); });
  if (!fault_.empty()) throw Fault(fault_);
  std::byte* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void WriteBehind::wait() noexcept {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return idle(); });
}

void WriteBehind::check() {
  std::lock_guard lock(mutex_);
  if (!fault_.empty()) throw Fault(fault_);
}

void WriteBehind::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || !todo_.empty(); });
    if (todo_.empty()) return;
    const Piece piece = todo_.front();
    todo_.pop_front();
    if (fault_.empty()) {  // otherwise the rest is not needed
      writing_++;
      lock.unlock();
      std::string fault;
      try {
        piece.file->write_direct(piece.offset, {piece.buffer, piece.length});
      } catch (const Fault& error) {
        fault = error.what();
      }
      lock.lock();
      writing_--;
      if (fault_.empty()) fault_ = std::move(fault);
    }
    free_.push_back(piece.buffer);
    done_.notify_all();
  }
}

}  // namespace megalith
