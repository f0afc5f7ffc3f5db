#include "data/metric_file.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/new_file.h"
#include "data/deepspeed_index.h"

namespace megalith {
namespace {

constexpr std::string_view kOurs = "{\"megalith_metric\":";

std::string header(const MetricSubject& subject) {
  nlohmann::ordered_json head{
      {"megalith_metric", 1}, {"metric", subject.metric}, {"samples", subject.samples}, {"data", subject.data}};
  if (!subject.model.empty()) head["model"] = subject.model;
  std::string line = print_json(head);
  line.resize((line.size() / sizeof(double) + 1) * sizeof(double), ' ');
  line.back() = '\n';
  return line;
}

// For messages: escapes bytes, as a file that is not text must not reach the terminal unchanged.
std::string quoted(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) {
    if (c >= ' ' && c <= '~') out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return '"' + out + '"';
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& expected, const std::string& got,
                         const std::string& hint = "") {
  throw UserError({path.string(), "curriculum", expected, got, hint});
}

MetricSubject subject_of(const std::filesystem::path& path, std::string_view line) {
  try {
    const nlohmann::json head = try_parse_json(line, path.string());
    return {head.at("metric").get<std::string>(), head.at("samples").get<int64_t>(), head.at("data").get<std::string>(),
            head.value("model", "")};
  } catch (const nlohmann::json::exception&) {
    refuse(path, "a first line that describes the values", quoted(line), "run `megalith analyze` again");
  }
}

std::vector<double> read_ours(const std::filesystem::path& path, std::string_view text, const MetricSubject& subject) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const MetricSubject there = subject_of(path, line);
  const std::string hint = "run `megalith analyze` on this configuration again";
  if (there.samples != subject.samples || there.data != subject.data)
    refuse(path, fmt::format("values for the data of this run ({} samples, {})", subject.samples, subject.data),
           fmt::format("values for other data ({} samples, {})", there.samples, there.data), hint);
  if (!subject.model.empty() && there.model != subject.model)
    refuse(path, fmt::format("losses of the model {}", subject.model),
           fmt::format("losses of {}", there.model.empty() ? "another model" : "the model " + there.model), hint);
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  std::vector<double> values(static_cast<size_t>(subject.samples));
  if (text.size() != values.size() * sizeof(double)) refuse(path, "a complete metric file", "a truncated one", hint);
  std::memcpy(values.data(), text.data(), text.size());
  for (double& value : values) value += 0.0;  // turns -0 into 0, as MetricWriter::add does
  return values;
}

constexpr std::string_view kWhite = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
  return text.substr(0, text.find_last_not_of(kWhite) + 1);  // npos + 1 is 0: an empty text
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);  // from_chars accepts a minus but no plus
  double value = 0;
  auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stopped != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<double> read_lines(const std::filesystem::path& path, std::string_view text) {
  std::vector<double> values;
  text = text.substr(0, text.find_last_not_of(kWhite) + 1);  // removes empty lines at the end
  for (int64_t number = 1; !text.empty(); number++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::optional<double> value = parse_number(line);
    if (!value) refuse(fmt::format("{}:{}", path.string(), number), "one number per line", quoted(line));
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
           fmt::to_string(values.size()), "compute the values for this data, data.sequence and data.valid_fraction");
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

MetricWriter::MetricWriter(std::filesystem::path path, int64_t samples)
    : path_(std::move(path)), aside_(path_.string() + ".part"), samples_(samples) {
  fd_ = open_or_create_file(aside_);
  if (fd_ < 0) throw_cannot("write", aside_, errno);
}

// The delegated constructor is complete, so the destructor cleans up if this one throws.
MetricWriter::MetricWriter(std::filesystem::path path, const MetricSubject& subject)
    : MetricWriter(std::move(path), subject.samples) {
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
    throw UserError({aside_.string(), "", "a file that no other process writes", "another process that writes it",
                     "wait for the other process"});
  const std::string head = header(subject);
  const int64_t there = values_after(head);
  done_ = std::clamp<int64_t>(there, 0, samples_);
  const auto kept = there < 0 ? 0 : static_cast<off_t>(head.size() + static_cast<size_t>(done_) * sizeof(double));
  if (::ftruncate(fd_, kept) != 0 || ::lseek(fd_, kept, SEEK_SET) != kept) throw_cannot("write", aside_, errno);
  if (there < 0) write_whole(fd_, head, aside_);
}

MetricWriter::~MetricWriter() {
  if (fd_ >= 0) ::close(fd_);
}

int64_t MetricWriter::values_after(const std::string& head) const {
  const MappedFile file(aside_);
  std::string_view text = file.text();
  if (!text.starts_with(head)) return -1;
  text.remove_prefix(head.size());
  // Blocks that a crash lost contain zeroes. Values are aligned to their size, so each is either complete or zero.
  const auto values = static_cast<int64_t>(text.size() / sizeof(double));
  for (int64_t i = 0; i < values; i++) {
    uint64_t bits;
    std::memcpy(&bits, text.data() + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    if (bits == 0) return i;
  }
  return values;
}

void MetricWriter::add(std::span<const double> values) {
  MEGALITH_ASSERT(done_ + std::ssize(values) <= samples_, "more values than samples");
  std::vector<double> marked(values.begin(), values.end());
  std::ranges::replace(marked, 0.0, -0.0);  // a stored 0 must differ from a lost value, which is all zeroes
  write_whole(fd_, {reinterpret_cast<const char*>(marked.data()), values.size_bytes()}, aside_);
  done_ += std::ssize(values);
}

void MetricWriter::finish() {
  MEGALITH_ASSERT(done_ == samples_, "{} of {} values", done_, samples_);
  if (::fsync(fd_) != 0) throw_cannot("write", aside_, errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) throw_cannot("write", path_, errno);
  sync_directory(path_.parent_path());
}

}  // namespace megalith
