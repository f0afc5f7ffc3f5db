// A file's text, decompressed as it is read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace megalith {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Appends the next bytes to `out`, about `want`; false at the end.
  virtual bool read(std::string& out, size_t want) = 0;
  virtual int64_t stored_bytes_read() const = 0;  // of the file as it is on disk
  // Goes to a place in the text at once; false, and nothing done, where what lies before has to be read.
  virtual bool seek(int64_t) { return false; }
};

// Plain, gzip (any number of members) or zstd (any number of frames), told by the first bytes. UserError for
// a file that cannot be read, is empty, is packed in another way, or whose compression is damaged.
std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path);

// `start` is how a file's text begins (some kilobytes, where there are as many). Returns how many bytes of it
// are a mark of UTF-8 and no text; UserError for what is no text at all: UTF-16, or bytes that are zero.
size_t check_text_start(const std::filesystem::path& path, std::string_view start);

}  // namespace megalith
