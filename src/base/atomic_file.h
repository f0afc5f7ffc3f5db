// A file that is written aside, as NAME.RANDOM.tmp, from its beginning to its end, and goes unless it is given its name.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

namespace megalith {

// Writes all bytes where the descriptor of `path` stands. Throws as write_file_atomically does.
void write_whole(int descriptor, std::string_view bytes, const std::filesystem::path& path);

class AtomicFile {
 public:
  // Throws as write_file_atomically does, here and below.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void put(std::string_view bytes);
  // The bytes of a number, as this machine has them.
  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    put(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }
  // Makes what was put durable and gives back what the writing took.
  void end();
  // Replaces what had the name. After end(); syncing the folder is the caller's, who may name several.
  void give_name();
  // The same, but returns false if a file has the name already. That file stays.
  bool give_name_if_free();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_, aside_;
  std::string buffer_;  // what is not written yet
  int fd_ = -1;
  bool named_ = false;
};

}  // namespace megalith
