#include "text/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace megalith {
namespace {

constexpr size_t kChunk = 1 << 17;

class PlainFile final : public ByteSource {
 public:
  explicit PlainFile(const std::filesystem::path& path)
      : path_(path), file_(::fdopen(open_regular_file(path), "rb")) {
    if (!file_) cannot_read(errno);
  }
  ~PlainFile() override {
    if (file_) std::fclose(file_);
  }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  bool read(std::string& out, size_t want) override {
    size_t before = out.size();
    out.resize(before + want);
    errno = 0;
    size_t got = std::fread(out.data() + before, 1, want, file_);
    out.resize(before + got);
    if (got < want && std::ferror(file_)) cannot_read(errno);
    stored_ += static_cast<int64_t>(got);
    return got > 0;
  }
  int64_t stored_bytes_read() const override { return stored_; }
  bool seek(int64_t place) override {
    if (::fseeko(file_, place, SEEK_SET) != 0) cannot_read(errno);
    stored_ = place;
    return true;
  }

  std::string first_bytes() {
    std::string start;
    read(start, 6);
    std::rewind(file_);
    stored_ = 0;
    return start;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void cannot_read(int error) {
    std::string reason = std::strerror(error);
    if (error == EIO) throw Fault(fmt::format("{}: cannot read: {}", path_.string(), reason));
    throw UserError({path_.string(), "", "", "", fmt::format("cannot read: {}", reason)});
  }
  std::filesystem::path path_;
  std::FILE* file_;
  int64_t stored_ = 0;
};

// Common part of gzip and zstd: feeds stored bytes, collects text, detects a file that ends too early.
class Compressed : public ByteSource {
 public:
  explicit Compressed(std::unique_ptr<PlainFile> file) : file_(std::move(file)) {}

  bool read(std::string& out, size_t want) final {
    size_t before = out.size();
    while (out.size() - before < want) {
      if (used_ == input_.size() && (at_boundary_ || !more_inside_)) {
        input_.clear();
        used_ = 0;
        if (!file_->read(input_, kChunk)) {
          if (!at_boundary_) damaged("it ends too early");
          break;
        }
      }
      size_t at = out.size();
      out.resize(at + kChunk);
      size_t produced = step(out.data() + at, kChunk);
      out.resize(at + produced);
      more_inside_ = produced == kChunk;
    }
    return out.size() > before;
  }
  int64_t stored_bytes_read() const final { return file_->stored_bytes_read(); }

 protected:
  // Consumes bytes of input_ from used_ on. Writes at most `room` bytes and returns how many. Sets at_boundary_.
  virtual size_t step(char* to, size_t room) = 0;
  [[noreturn]] void damaged(const std::string& reason) const {
    throw UserError({file_->path().string(), "", fmt::format("complete {} data", format()),
                     fmt::format("a damaged file ({})", reason), "copy or download the file again"});
  }
  virtual const char* format() const = 0;

  std::string input_;
  size_t used_ = 0;
  bool at_boundary_ = true;  // true if not inside a gzip member or zstd frame

 private:
  bool more_inside_ = false;  // the last output was full: the decoder may have more text without more input
  std::unique_ptr<PlainFile> file_;
};

class Gzip final : public Compressed {
 public:
  explicit Gzip(std::unique_ptr<PlainFile> file) : Compressed(std::move(file)) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw Fault("out of memory: cannot decompress gzip");
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

 private:
  const char* format() const override { return "gzip"; }
  size_t step(char* to, size_t room) override {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + used_);
    stream_.avail_in = static_cast<uInt>(input_.size() - used_);
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(room);
    int result = inflate(&stream_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      damaged(stream_.msg ? stream_.msg : "it cannot be decompressed");
    used_ = input_.size() - stream_.avail_in;
    at_boundary_ = result == Z_STREAM_END;
    if (at_boundary_) inflateReset(&stream_);  // another member may follow
    return room - stream_.avail_out;
  }
  z_stream stream_{};
};

class Zstd final : public Compressed {
 public:
  explicit Zstd(std::unique_ptr<PlainFile> file)
      : Compressed(std::move(file)), stream_(ZSTD_createDStream()) {
    if (!stream_) throw Fault("out of memory: cannot decompress zstd");
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

 private:
  const char* format() const override { return "zstd"; }
  size_t step(char* to, size_t room) override {
    ZSTD_inBuffer in{input_.data(), input_.size(), used_};
    ZSTD_outBuffer out{to, room, 0};
    size_t result = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(result)) damaged(ZSTD_getErrorName(result));
    used_ = in.pos;
    at_boundary_ = result == 0;
    return out.pos;
  }
  ZSTD_DStream* stream_;
};

// Formats that users mistake for text, recognized by their first bytes.
struct Packed {
  std::string_view start, name, hint;
};
constexpr Packed kPacked[] = {
    {"BZh", "bzip2", "unpack it with bunzip2, or repack it with gzip or zstd"},
    {std::string_view("\xFD"
                      "7zXZ\0",
                      6),
     "xz", "unpack it with unxz, or repack it with gzip or zstd"},
    {"PK\x03\x04", "a zip archive", "unpack it with unzip"},
    {"PAR1", "a Parquet table", "convert it to JSON lines"},
    {"%PDF-", "a PDF", "extract its text with pdftotext"},
};

}  // namespace

std::unique_ptr<ByteSource> open_text(const std::filesystem::path& path) {
  auto file = std::make_unique<PlainFile>(path);
  std::string start = file->first_bytes();
  if (start.empty()) throw UserError({path.string(), "", "text", "an empty file", ""});
  if (start.starts_with("\x1F\x8B")) return std::make_unique<Gzip>(std::move(file));
  if (start.starts_with("\x28\xB5\x2F\xFD")) return std::make_unique<Zstd>(std::move(file));
  for (const Packed& packed : kPacked)
    if (start.starts_with(packed.start))
      throw UserError({path.string(), "", "text, or text packed with gzip or zstd", std::string(packed.name),
                       std::string(packed.hint)});
  return file;
}

size_t check_text_start(const std::filesystem::path& path, std::string_view start) {
  start = start.substr(0, 1 << 13);
  // English text in UTF-16 has a zero in every second byte.
  size_t zeros[2] = {};
  for (size_t i = 0; i < start.size(); i++) zeros[i % 2] += start[i] == '\0';
  bool wide = start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF") ||
              (std::max(zeros[0], zeros[1]) * 4 > start.size() && std::min(zeros[0], zeros[1]) == 0);
  if (wide)
    throw UserError(
        {path.string(), "", "UTF-8 text", "UTF-16",
         fmt::format("convert it with iconv -f UTF-16 -t UTF-8 {} > NEW.txt", path.filename().string())});
  if (zeros[0] + zeros[1] > 0)
    throw UserError({path.string(), "", "text", "zero bytes, as in a binary file",
                     "if it is a text file, remove them with tr -d '\\000'"});
  return start.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

}  // namespace megalith
