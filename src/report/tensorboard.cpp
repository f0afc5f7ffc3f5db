#include "report/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/files.h"
#include "base/log.h"
#include "base/new_file.h"
#include "report/crc32c.h"

namespace megalith {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

template <class T>
void put_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little && std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// A protobuf message under construction, with the four wire types that an Event needs.
class Message {
 public:
  Message& varint(int field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
    return *this;
  }
  Message& fixed64(int field, double value) {
    key(field, 1);
    put_little_endian(bytes_, value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& fixed32(int field, float value) {
    key(field, 5);
    put_little_endian(bytes_, value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire_type) { raw_varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

Message event_at(int64_t step) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return Message()
      .fixed64(1, std::chrono::duration<double>(now).count())  // Event.wall_time
      .varint(2, static_cast<uint64_t>(step));                 // Event.step
}

Message scalar(std::string_view tag, double value) {
  return Message().text(1, tag).fixed32(2, static_cast<float>(value));  // Summary.Value.tag, .simple_value
}

Message text_value(std::string_view tag, std::string_view text) {
  constexpr int kDtString = 7;
  Message tensor, plugin, metadata;
  // TensorProto.dtype, .tensor_shape (empty: a scalar), .string_val
  tensor.varint(1, kDtString).message(2, Message()).text(8, text);
  plugin.text(1, "text");  // SummaryMetadata.PluginData.plugin_name
  metadata.message(1, plugin);
  return Message().text(1, tag).message(8, tensor).message(9, metadata);  // .tag, .tensor, .metadata
}

// Samples are not Markdown. Markdown shows text with four spaces of indentation unchanged.
std::string as_preformatted(std::string_view text) {
  std::string out = "    ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

// TensorBoard reads the files of a directory in the order of their names. Returns a time in seconds that is later than
// those of all existing files, even if the clock is behind.
int64_t next_second(const std::filesystem::path& directory) {
  int64_t second = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch()).count();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t theirs = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), theirs);
    second = std::max(second, theirs + 1);
  }
  return second;
}

}  // namespace

TensorBoardLog::TensorBoardLog(const std::filesystem::path& directory, int64_t resumed_step) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) throw_cannot("create", directory, failed.value());
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  path_ = directory / fmt::format("{}{:010}.{}.{}", kPrefix, next_second(directory), host, ::getpid());
  fd_ = create_file(path_);
  if (fd_ < 0) throw_cannot("write", path_, errno);
  write_record(event_at(0).text(3, "brain.Event:2").bytes());  // Event.file_version
  if (resumed_step > 0)  // Event.session_log with status START: steps from here on replace earlier ones
    write_record(event_at(resumed_step + 1).message(7, Message().varint(1, 1)).bytes());
}

TensorBoardLog::~TensorBoardLog() {
  if (fd_ >= 0) ::close(fd_);
}

void TensorBoardLog::append(const StepMetrics& m) {
  Message summary;
  auto add = [&](const Message& value) { summary.message(1, value); };
  for (const MetricRow& row : kMetrics)
    if (!row.tag.empty() && m[row.id]) add(scalar(row.tag, *m[row.id]));
  for (const auto& [metric, limit] : m.difficulty) add(scalar("difficulty/" + metric, limit));
  if (m.sample) add(text_value("sample", as_preformatted(*m.sample)));
  write_record(event_at(m.step).message(5, summary).bytes());  // Event.summary
}

void TensorBoardLog::write_record(std::string_view data) {
  if (broken_) return;
  std::string record;
  put_little_endian(record, static_cast<uint64_t>(data.size()));
  put_little_endian(record, masked_crc32c(record));
  record.append(data);
  put_little_endian(record, masked_crc32c(data));
  for (std::string_view rest = record; !rest.empty();) {
    ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      broken_ = true;
      log::warn("{}: cannot write: {}; training continues without TensorBoard events", path_.string(), std::strerror(errno));
      return;
    }
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace megalith
