// Memory that processes of one host share: memfds. They have no name and disappear with their last user.
#pragma once
#include <cstddef>
#include <cstdint>

namespace megalith {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Creates a sparse memfd of zeroes. Throws Fault.
Descriptor make_memfd(const char* name, int64_t bytes);

// A shared mapping of the first `bytes` of a descriptor. The descriptor may be closed afterwards. The mapping is aligned
// to huge pages, so that the descriptor's huge pages are mapped as such.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, int64_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  size_t reserved_bytes() const;

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  void* reserved_ = nullptr;  // the system's mapping, before alignment
};

}  // namespace megalith
