#include "comm/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace megalith {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor make_memfd(const char* name, int64_t bytes) {
  Descriptor made(memfd_create(name, MFD_CLOEXEC));
  if (made.get() < 0 || ftruncate(made.get(), bytes) != 0) {
    throw Fault(fmt::format("cannot create {} of shared memory: {}", show(Bytes(bytes)), std::strerror(errno)));
  }
  return made;
}

Mapping::Mapping(int fd, int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const auto refuse = [&] {
    throw Fault(fmt::format("cannot map {} of shared memory: {}", show(Bytes(bytes)), std::strerror(errno)));
  };
  reserved_ = mmap(nullptr, reserved_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved_ == MAP_FAILED) refuse();
  const auto begin = (reinterpret_cast<uintptr_t>(reserved_) + kHugePage - 1) / kHugePage * kHugePage;
  void* got = mmap(reinterpret_cast<void*>(begin), static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (got == MAP_FAILED) {
    const int reason = errno;
    munmap(reserved_, reserved_bytes());
    errno = reason;
    refuse();
  }
  data_ = static_cast<std::byte*>(got);
}

size_t Mapping::reserved_bytes() const { return static_cast<size_t>(bytes_) + kHugePage; }

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(reserved_, reserved_bytes());
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      reserved_(std::exchange(other.reserved_, nullptr)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(reserved_, other.reserved_);
  return *this;
}

}  // namespace megalith
