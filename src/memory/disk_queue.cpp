#include "memory/disk_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace megalith {

DiskQueue::DiskQueue(std::unique_ptr<DiskEngine> engine, int depth) : engine_(std::move(engine)) {
  MEGALITH_ASSERT(depth >= 1);
  slots_.resize(static_cast<size_t>(depth));
  for (size_t slot = slots_.size(); slot-- > 0;) free_slots_.push_back(slot);
}

DiskQueue::~DiskQueue() {
  waiting_.clear();
  // If this throws, the process ends. That is better than letting the kernel write to memory that has a new owner.
  for (size_t flying = slots_.size() - free_slots_.size(); flying > 0; flying--) engine_->finish();
}

DiskQueue::Ticket DiskQueue::read(SpillFile& file, int64_t offset, std::span<std::byte> into, Checks by) {
  return add(file, offset, into.data(), static_cast<int64_t>(into.size()), false, by);
}

DiskQueue::Ticket DiskQueue::write(SpillFile& file, int64_t offset, std::span<const std::byte> from, Checks by) {
  return add(file, offset, const_cast<std::byte*>(from.data()), static_cast<int64_t>(from.size()), true, by);
}

DiskQueue::Ticket DiskQueue::add(SpillFile& file, int64_t offset, std::byte* data, int64_t length,
                                 bool write, Checks by) {
  const int64_t unit = file.unit();
  MEGALITH_ASSERT(
      offset >= 0 && offset % unit == 0 && length % kDiskAlign == 0 && offset + length <= file.bytes(),
      "offset {}, length {}, file of {}", offset, length, file.bytes());
  MEGALITH_ASSERT(reinterpret_cast<uintptr_t>(data) % kDiskAlign == 0);
  for (int64_t at = 0; at < length && !write; at += unit)
    MEGALITH_ASSERT(file.holds(offset + at, std::min(unit, length - at)), "{}, chunk at {}: not written in {} bytes",
                    file.path().string(), offset + at, std::min(unit, length - at));
  const Ticket ticket = next_ticket_++;
  if (length == 0) return ticket;
  for (int64_t at = 0; at < length; at += unit)
    waiting_.push_back({ticket, &file, write, by, offset + at, data + at, std::min(unit, length - at), 0});
  tickets_[ticket].requests = (length + unit - 1) / unit;
  moved_[write].fetch_add(length, std::memory_order_relaxed);
  start_more();
  return ticket;
}

void DiskQueue::start_more() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    Request request = waiting_.front();
    waiting_.pop_front();
    Progress& progress = tickets_.at(request.ticket);
    if (!progress.error.empty()) {  // the transfer has failed: the rest is not needed
      progress.requests--;
      continue;
    }
    if (request.write && request.by == Checks::queue)
      request.file->remember(request.offset, {request.data, static_cast<size_t>(request.length)});
    const size_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = request;
    start(slot);
  }
  engine_->submit();
}

// Starts the remaining part of the slot's request.
void DiskQueue::start(size_t slot) {
  const Request& r = slots_[slot];
  engine_->start({r.file->descriptor(), r.write, r.offset + r.moved, r.data + r.moved, r.length - r.moved},
                 slot);
}

void DiskQueue::finish_one() {
  const DiskEngine::Done done = engine_->finish();
  const auto slot = static_cast<size_t>(done.tag);
  Request& request = slots_[slot];
  const char* verb = request.write ? "write" : "read";
  if (done.result == -EINTR || done.result == -EAGAIN) {
    start(slot);
  } else if (done.result < 0) {
    const auto error = static_cast<int>(-done.result);
    const bool full = error == ENOSPC || error == EDQUOT;
    fail(request, fmt::format("spill file {}: cannot {} {} at byte {}: {}{}", request.file->path().string(), verb,
                              show(Bytes(request.length - request.moved)), request.offset + request.moved,
                              std::strerror(error),
                              full ? fmt::format("; the disk of {} is full",
                                                 request.file->path().parent_path().string())
                                   : ""));
    end(slot);
  } else if (request.moved + done.result == request.length) {
    if (!request.write && request.by == Checks::queue) {
      try {
        request.file->check(request.offset, {request.data, static_cast<size_t>(request.length)});
      } catch (const Fault& fault) {
        fail(request, fault.what());
      }
    }
    end(slot);
  } else if (int64_t whole = done.result / kDiskAlign * kDiskAlign; whole > 0) {
    // Fewer bytes than requested: start the rest again, from an offset that direct I/O allows.
    request.moved += whole;
    start(slot);
  } else {
    const int64_t at = request.offset + request.moved + done.result;
    fail(request, request.write
                      ? fmt::format("spill file {}: the disk accepts no more bytes at byte {} and reports no error",
                                    request.file->path().string(), at)
                      : fmt::format("spill file {} ends at byte {} of {}: it was cut short",
                                    request.file->path().string(), at, request.file->bytes()));
    end(slot);
  }
  start_more();
}

void DiskQueue::fail(const Request& request, std::string error) {
  std::string& first = tickets_.at(request.ticket).error;
  if (first.empty()) first = std::move(error);
}

void DiskQueue::end(size_t slot) {
  tickets_.at(slots_[slot].ticket).requests--;
  free_slots_.push_back(slot);
}

void DiskQueue::wait(Ticket ticket) {
  MEGALITH_ASSERT(ticket > 0 && ticket < next_ticket_);
  auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  while (found->second.requests > 0) finish_one();
  const std::string error = std::move(found->second.error);
  tickets_.erase(found);
  if (!error.empty()) throw Fault(error);
}

void DiskQueue::wait_all() {
  std::string first;
  while (!tickets_.empty()) {
    try {
      wait(tickets_.begin()->first);
    } catch (const Fault& fault) {
      if (first.empty()) first = fault.what();
    }
  }
  if (!first.empty()) throw Fault(first);
}

std::unique_ptr<DiskQueue> make_disk_queue(const IoMethod& way, int depth) {
  return std::make_unique<DiskQueue>(way.uring ? make_uring_engine(depth) : make_thread_engine(depth), depth);
}

}  // namespace megalith
