// Reading and writing whole files. A file is never visible half written: it is written under a temporary name, synced and
// renamed.
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

// Reads a whole file. Throws UserError with the path and the system's reason. Accepts regular files, and a pipe or terminal
// that this process was started with (/dev/stdin, or <(command) of a shell).
std::string read_file(const std::filesystem::path& path);

// Writes a temporary file next to the target, syncs it and renames it over the target. Throws Fault (disk full, I/O error)
// or UserError (no permission).
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// The same, but if the file exists, it stays and the result is false. If several processes write, one of them succeeds.
bool write_file_if_absent(const std::filesystem::path& path, std::string_view content);

// Throws for a failed attempt to `verb` ("read", "write") a file; `error` is errno. Throws Fault if errno means a fault of
// the machine (is_machine_fault), else UserError.
[[noreturn]] void throw_cannot(const char* verb, const std::filesystem::path& path, int error);

// Deletes a file or an empty folder, if it exists. Leaves a folder with contents as it is. If deleting fails, warns: a file
// that stays takes space, but does no other harm.
void delete_or_warn(const std::filesystem::path& path);

// Makes renames and new entries in a directory durable. An empty path, the parent of a bare name, is the current directory.
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
