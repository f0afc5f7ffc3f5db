// io_uring without registered buffers. Measured with requests of 1 MiB: for buffers on huge pages the kernel takes 2 to
// 9 ms of a core per GB, registered or not. On small pages it takes 50 ms, registered 23 ms. Our large buffers are on
// huge pages. RLIMIT_MEMLOCK (8 MiB by default) would not let most users register a window of blocks. We also do not use
// the ring's single-issuer modes, which tie it to the thread that created it.
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "memory/disk_engine.h"

namespace megalith {
namespace {

class UringEngine : public DiskEngine {
 public:
  explicit UringEngine(int depth) {
    if (int error = -::io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0))
      throw Fault(fmt::format("io_uring: cannot start: {}", std::strerror(error)));
  }
  ~UringEngine() override { ::io_uring_queue_exit(&ring_); }

  void start(const Transfer& t, uint64_t tag) override {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (!entry) {
      submit();
      entry = ::io_uring_get_sqe(&ring_);
    }
    MEGALITH_ASSERT(entry, "more transfers in flight than the depth");
    const auto length = static_cast<unsigned>(t.length);
    const auto offset = static_cast<uint64_t>(t.offset);
    if (t.write)
      ::io_uring_prep_write(entry, t.descriptor, t.data, length, offset);
    else
      ::io_uring_prep_read(entry, t.descriptor, t.data, length, offset);
    ::io_uring_sqe_set_data64(entry, tag);
  }

  void submit() override {
    while (::io_uring_sq_ready(&ring_) > 0) {
      int result = ::io_uring_submit(&ring_);
      if (result == -EINTR) continue;
      if (result == -EAGAIN || result == -EBUSY) {  // the kernel is short of memory for a moment
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      if (result < 0) throw Fault(fmt::format("io_uring: cannot submit: {}", std::strerror(-result)));
    }
  }

  Done finish() override {
    submit();
    io_uring_cqe* entry = nullptr;
    int result;
    while ((result = ::io_uring_wait_cqe(&ring_, &entry)) == -EINTR || result == -EAGAIN) {
    }
    if (result < 0) throw Fault(fmt::format("io_uring: cannot wait: {}", std::strerror(-result)));
    Done done{::io_uring_cqe_get_data64(entry), entry->res};
    ::io_uring_cqe_seen(&ring_, entry);
    return done;
  }

 private:
  io_uring ring_{};
};

}  // namespace

std::unique_ptr<DiskEngine> make_uring_engine(int depth) {
  return std::make_unique<UringEngine>(depth);
}

}  // namespace megalith
