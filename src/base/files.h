// Files that are never half there: written aside, synced, renamed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

// Opens a regular file to read and returns its descriptor, which the caller closes. Throws UserError for anything else:
// a pipe or a device could keep the reader waiting forever.
int open_regular_file(const std::filesystem::path& path);

// Reads a whole file. Throws UserError naming the path and the system's reason. Besides regular files it takes a pipe or
// terminal that this process was started with (/dev/stdin, or <(command) of a shell).
std::string read_file(const std::filesystem::path& path);

// Writes beside the target, syncs, renames over it. Throws Fault (disk full, I/O error) or UserError (no permission).
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// The same, but a file that exists stays and the result is false. If several processes write, one of them succeeds.
bool write_file_if_absent(const std::filesystem::path& path, std::string_view content);

// What the system said to an attempt ("read", "write") on a file: a Fault where the disk is full or failing, else a UserError.
[[noreturn]] void throw_cannot(const char* verb, const std::filesystem::path& path, int error);

// Makes renames and new entries in a directory durable; the parent of a bare name, "", is the current one.
void sync_directory(const std::filesystem::path& directory);

// A read-only memory map of a whole file; empty files map to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace megalith
