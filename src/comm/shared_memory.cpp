#include "comm/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace megalith {

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
    throw Fault(fmt::format("no shared memory of {}: {}", show(Bytes(bytes)), std::strerror(errno)));
  }
  return made;
}

Mapping::Mapping(int fd, int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* got = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (got == MAP_FAILED) {
    throw Fault(fmt::format("shared memory of {} cannot be mapped: {}", show(Bytes(bytes)), std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(got);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace megalith
