// An open file. It closes itself. Reads and writes whole ranges at an offset. Every error has the path and the reason.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace megalith {

inline constexpr int64_t kDirectAlign = 4096;  // bytes; enough for every disk

class FileHandle {
 public:
  FileHandle() = default;
  static FileHandle open_to_read(const std::filesystem::path& path);  // throws UserError if it is missing, a directory, ...
  static FileHandle create(const std::filesystem::path& path);         // throws Fault, also if the name exists
  static FileHandle open_to_write(const std::filesystem::path& path);  // throws Fault; keeps the content
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const;
  // Fills `out`. Throws Fault for a disk error, and UserError if the file is too short.
  void read_at(int64_t offset, std::span<std::byte> out) const;

  // These throw Fault (disk full, I/O error). Thread-safe on disjoint ranges.
  void reserve(int64_t size);  // allocates the space now, so that a full disk is noticed before anything is written
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  // Bypasses the page cache if the file system allows it. Offset, length and address are multiples of kDirectAlign.
  void write_direct(int64_t offset, std::span<const std::byte> bytes);
  void sync();

 private:
  FileHandle(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  void open_directly();
  [[noreturn]] void fail(const char* verb, int error) const;
  int fd_ = -1;
  int direct_ = -1;  // the same file, opened with O_DIRECT; -1: not possible
  std::filesystem::path path_;
};

std::span<const std::byte> as_bytes(std::string_view text);

}  // namespace megalith
