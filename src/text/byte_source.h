// The text of a file, decompressed while it is read.
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
  // Appends about `want` bytes to `out`. Returns false at the end of the text.
  virtual bool read(std::string& out, size_t want) = 0;
  virtual int64_t stored_bytes_read() const = 0;  // bytes of the file on disk (compressed) read so far
  // Jumps to a byte position in the text. Returns false and does nothing if the source can only be read from the
  // beginning.
  virtual bool seek(int64_t) { return false; }
};

// Opens a plain, gzip (any number of members) or zstd (any number of frames) file. The first bytes decide which.
// Throws UserError if the file cannot be read, is empty, is packed in another way, or if its compressed data is damaged.
std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path);

// `start` is the beginning of a file's text (a few kilobytes, if the file is that long). Returns the length of the
// UTF-8 byte order mark (0 or 3), which is not text. Throws UserError for UTF-16 or zero bytes.
size_t check_text_start(const std::filesystem::path& path, std::string_view start);

}  // namespace megalith
