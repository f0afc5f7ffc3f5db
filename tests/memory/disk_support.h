// Folders, buffers and I/O methods for the tests of the disk tier.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "memory/disk_queue.h"
#include "memory/spill_folder.h"

namespace megalith {

// A new folder. The destructor removes it with its content.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& under = std::filesystem::current_path()) {
    std::string pattern = (under / "disk-test-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    if (!made) throw std::runtime_error("no folder " + pattern);
    path_ = made;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Memory aligned for direct I/O.
class DiskBuffer {
 public:
  explicit DiskBuffer(int64_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kDiskAlign, static_cast<size_t>(bytes))), std::free),
        bytes_(static_cast<size_t>(bytes)) {}
  std::span<std::byte> span() { return {data_.get(), bytes_}; }
  std::span<std::byte> span(int64_t offset, int64_t length) {
    return span().subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
  }
  void fill(uint64_t seed) {
    auto* words = reinterpret_cast<uint64_t*>(data_.get());
    uint64_t x = seed;
    for (size_t i = 0; i < bytes_ / sizeof(uint64_t); i++) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      words[i] = x ^ x >> 33;
    }
  }
  void wipe() { std::fill(span().begin(), span().end(), std::byte{0xEE}); }
  bool operator==(const DiskBuffer& other) const {
    return bytes_ == other.bytes_ && std::equal(data_.get(), data_.get() + bytes_, other.data_.get());
  }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> data_;
  size_t bytes_;
};

inline std::string way_name(const IoMethod& way) {
  return std::string(way.uring ? "Uring" : "Threads") + (way.direct ? "Direct" : "Buffered");
}

// Shows an I/O method in the names of tests.
inline void PrintTo(const IoMethod& way, std::ostream* out) { *out << way_name(way); }

inline std::vector<IoMethod> all_ways() {
  return {{true, true, ""}, {true, false, ""}, {false, true, ""}, {false, false, ""}};
}

// Returns why this I/O method does not work in this folder, or an empty text if it works. Runs the self-test of exactly
// this method.
inline std::string obstacle(const std::filesystem::path& folder, const IoMethod& way) {
  try {
    IoMethod found = choose_io_method(folder, {way.uring, way.direct});
    // choose_io_method found this method, or a faster one of the allowed ones.
    if (found.uring == way.uring && found.direct == way.direct) return "";
    if (way.uring && !way.direct) {  // with the page cache, threads are tried first: try the ring itself
      make_disk_queue(way, 1);
      return "";
    }
    return found.why;
  } catch (const std::exception& error) {
    return error.what();
  }
}

inline std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "no Fault";
}

}  // namespace megalith
