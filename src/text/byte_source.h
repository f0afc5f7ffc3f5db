// A file's text, decompressed as it is read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace megalith {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Appends the next bytes to `out`, about `want`; false at the end.
  virtual bool read(std::string& out, size_t want) = 0;
  virtual int64_t stored_bytes_read() const = 0;  // of the file as it is on disk
};

// Plain, gzip (any number of members) or zstd (any number of frames), told by the first bytes. UserError for
// a file that cannot be read, is empty, is UTF-16, or whose compression is damaged.
std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path);

}  // namespace megalith
