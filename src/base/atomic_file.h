// A file that is written from its beginning to its end under a temporary name, NAME.RANDOM.tmp. The destructor deletes
// the file unless it was renamed to its final name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

namespace megalith {

// Writes all bytes at the current position of the descriptor. Messages name `path`. Throws as write_file_atomically does.
void write_whole(int descriptor, std::string_view bytes, const std::filesystem::path& path);
// The same at `offset`.
void write_whole_at(int descriptor, std::string_view bytes, int64_t offset, const std::filesystem::path& path);

// Reserves space for a file, so that a full disk is noticed before anything is written. Returns 0, or errno. If the file
// system cannot reserve space, a full disk is noticed only while writing.
int reserve_space(int descriptor, int64_t bytes);

class AtomicFile {
 public:
  // The constructor and all members below throw as write_file_atomically does.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void reserve(int64_t bytes);
  void put(std::string_view bytes);
  // Writes the bytes of a number in the byte order of this machine.
  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    put(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }
  // Makes the content durable, closes the file and frees the buffer.
  void end();
  // Renames the file to its final name and replaces a file of that name. Call end() first. The caller syncs the folder:
  // it may rename several files first.
  void give_name();
  // The same, but if a file with the name exists, it stays and the result is false.
  bool give_name_if_free();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_, aside_;
  std::string buffer_;  // bytes that are not written yet
  int fd_ = -1;
  bool named_ = false;
};

}  // namespace megalith
