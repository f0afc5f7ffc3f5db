#include "data/metric_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "data/deepspeed_index.h"

namespace megalith {
namespace {

constexpr std::string_view kOurs = "{\"megalith_metric\":";

std::string header(const MetricSubject& subject) {
  nlohmann::ordered_json head{
      {"megalith_metric", 1}, {"metric", subject.metric}, {"samples", subject.samples}, {"data", subject.data}};
  if (!subject.model.empty()) head["model"] = subject.model;
  return head.dump() + '\n';
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& expected, const std::string& got,
                         const std::string& hint = "") {
  throw UserError({path.string(), "curriculum", expected, got, hint});
}

std::vector<double> read_ours(const std::filesystem::path& path, std::string_view text, const MetricSubject& subject) {
  const size_t line = text.find('\n');
  const nlohmann::json there = nlohmann::json::parse(text.substr(0, line), nullptr, false);
  if (line == std::string_view::npos || !there.is_object()) refuse(path, "a metric file", "a torn one");
  const std::string hint = "run `megalith analyze` on this configuration again";
  if (there.value("samples", int64_t{0}) != subject.samples || there.value("data", "") != subject.data)
    refuse(path, fmt::format("values of these data ({} samples, {})", subject.samples, subject.data),
           fmt::format("those of others ({}, {})", there.value("samples", int64_t{0}), there.value("data", "")), hint);
  if (!subject.model.empty() && there.value("model", "") != subject.model)
    refuse(path, fmt::format("values under the model {}", subject.model),
           fmt::format("those under {}", there.value("model", "another")), hint);
  text.remove_prefix(line + 1);
  std::vector<double> values(static_cast<size_t>(subject.samples));
  if (text.size() != values.size() * sizeof(double)) refuse(path, "a whole metric file", "a torn one", hint);
  std::memcpy(values.data(), text.data(), text.size());
  return values;
}

constexpr std::string_view kWhite = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
  return text.substr(0, text.find_last_not_of(kWhite) + 1);  // npos + 1 is 0: nothing
}

// For messages: a file that is no text must not reach the terminal as it is.
std::string quoted(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) {
    if (c >= ' ' && c <= '~') out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return '"' + out + '"';
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);  // from_chars takes a minus alone
  double value = 0;
  auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stopped != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<double> read_lines(const std::filesystem::path& path, std::string_view text) {
  std::vector<double> values;
  text = text.substr(0, text.find_last_not_of(kWhite) + 1);  // lines left blank at the end
  for (int64_t number = 1; !text.empty(); number++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::optional<double> value = parse_number(line);
    if (!value) refuse(fmt::format("{}:{}", path.string(), number), "one number a line", quoted(line));
    values.push_back(*value);
  }
  return values;
}

std::vector<double> read_any(const std::filesystem::path& path, const MetricSubject& subject) {
  if (is_deepspeed_index(path)) return read_deepspeed_values(path);
  MappedFile file(path);
  if (file.text().starts_with(kOurs)) return read_ours(path, file.text(), subject);
  return read_lines(path, file.text());
}

}  // namespace

std::vector<double> read_metric(const std::filesystem::path& path, const MetricSubject& subject) {
  std::vector<double> values = read_any(path, subject);
  if (static_cast<int64_t>(values.size()) != subject.samples)
    refuse(path, fmt::format("one number for each of the {} training samples", subject.samples),
           fmt::to_string(values.size()), "it was made for other data, another data.sequence or data.valid_fraction");
  for (size_t i = 0; i < values.size(); i++)
    if (!std::isfinite(values[i]))
      refuse(path, "finite numbers", fmt::format("{} for sample {}", values[i], i));
  return values;
}

bool has_metric(const std::filesystem::path& path, const MetricSubject& subject) {
  if (!std::filesystem::exists(path)) return false;
  MappedFile file(path);
  const std::string head = header(subject);
  return file.text().starts_with(head) &&
         file.text().size() == head.size() + static_cast<size_t>(subject.samples) * sizeof(double);
}

MetricWriter::MetricWriter(std::filesystem::path path, const MetricSubject& subject)
    : path_(std::move(path)), aside_(path_.string() + ".part"), samples_(subject.samples) {
  const std::string head = header(subject);
  fd_ = ::open(aside_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw_cannot("write", aside_, errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd_);
    throw UserError({aside_.string(), "", "a file that no other process writes", "one that is", "wait for it"});
  }
  std::string there(head.size(), '\0');  // no more than it takes to know whose values follow
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || ::pread(fd_, there.data(), there.size(), 0) < 0)
    throw_cannot("write", aside_, errno);
  const bool fresh = there != head;
  if (!fresh)
    done_ = std::min(samples_, static_cast<int64_t>((static_cast<size_t>(status.st_size) - head.size()) / sizeof(double)));
  const auto size = static_cast<off_t>(head.size() + static_cast<size_t>(done_) * sizeof(double));
  if ((fresh && (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, head.data(), head.size(), 0) != std::ssize(head))) ||
      ::ftruncate(fd_, size) != 0 || ::lseek(fd_, size, SEEK_SET) != size)
    throw_cannot("write", aside_, errno);
}

MetricWriter::~MetricWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricWriter::add(std::span<const double> values) {
  MEGALITH_ASSERT(done_ + std::ssize(values) <= samples_, "more values than samples");
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  for (size_t written = 0; written < values.size_bytes();) {
    const ssize_t n = ::write(fd_, bytes + written, values.size_bytes() - written);
    if (n < 0 && errno != EINTR) throw_cannot("write", aside_, errno);
    if (n > 0) written += static_cast<size_t>(n);
  }
  done_ += std::ssize(values);
}

void MetricWriter::finish() {
  MEGALITH_ASSERT(done_ == samples_, "{} of {} values", done_, samples_);
  if (::fsync(fd_) != 0) throw_cannot("write", aside_, errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) throw_cannot("write", path_, errno);
  sync_directory(path_.parent_path());
}

}  // namespace megalith
