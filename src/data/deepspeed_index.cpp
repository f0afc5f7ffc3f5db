#include "data/deepspeed_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr std::string_view kValues = "sample_to_metric", kDistinct = "index_to_metric", kSamples = "index_to_sample",
                           kMerged = "index_to_sample_percentile_merged";

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Reads a number whose type is given by its code and its width in bytes.
double number(const char* at, uint8_t code, size_t width) {
  const bool is_signed = code >= 2 && code <= 5;
  switch (width) {
    case 1: return is_signed ? load<int8_t>(at) : load<uint8_t>(at);
    case 2: return is_signed ? load<int16_t>(at) : load<uint16_t>(at);
    case 4: return is_signed ? static_cast<double>(load<int32_t>(at)) : load<uint32_t>(at);
    default:
      if (code == 6 || code == 7) return load<double>(at);  // older versions use these codes for double
      return is_signed ? static_cast<double>(load<int64_t>(at)) : static_cast<double>(load<uint64_t>(at));
  }
}

// One pair of files, mapped. When opened, it checks that all numbers are inside the files.
class IndexFile {
 public:
  explicit IndexFile(std::filesystem::path prefix)
      : prefix_(std::move(prefix)), index_(shard_file(prefix_, ".idx")), numbers_(shard_file(prefix_, ".bin")) {
    std::string_view text = index_.text();
    if (text.size() < kShardHeaderBytes || !text.starts_with(kShardMagic))
      refuse("an index file of DeepSpeed", "something else");
    const char* head = text.data() + kShardMagic.size();
    code_ = load<uint8_t>(head + 8);
    items_ = load<uint64_t>(head + 9);
    if (load<uint64_t>(head) != 1)
      refuse("an index of version 1", fmt::to_string(load<uint64_t>(head)), "other versions are not supported");
    if (items_ > text.size() / 12 || text.size() < kShardHeaderBytes + items_ * 12)
      refuse("a complete index", "a truncated one", "copy the file again");
    check_numbers();
  }

  size_t items() const { return items_; }
  size_t count() const { return count_; }  // numbers in all items
  size_t length(size_t item) const {
    return static_cast<size_t>(load<int32_t>(index_.text().data() + kShardHeaderBytes + 4 * item));
  }
  double at(size_t item, size_t place) const {
    return number(numbers_.text().data() + offset(item) + width_ * place, code_, width_);
  }
  double only(size_t item, const char* of) const {  // the value of an item that must have one number
    if (length(item) != 1)
      refuse(fmt::format("one number for each {}", of), fmt::format("{} numbers for {} {}", length(item), of, item));
    return at(item, 0);
  }
  [[noreturn]] void refuse(const std::string& expected, const std::string& got,
                           const std::string& hint = "use DeepSpeed's NAME_sample_to_metric") const {
    throw UserError({shard_file(prefix_, ".idx").string(), "curriculum", expected, got, hint});
  }

 private:
  uint64_t offset(size_t item) const {
    return load<uint64_t>(index_.text().data() + kShardHeaderBytes + 4 * items_ + 8 * item);
  }

  void check_numbers() {
    const size_t bytes = numbers_.text().size();
    for (size_t i = 0; i < items_; i++) {
      if (length(i) > INT32_MAX) refuse("lengths of at least 0", fmt::to_string(static_cast<int64_t>(length(i))));
      count_ += length(i);
    }
    width_ = count_ > 0 ? bytes / count_ : 1;
    if (bytes != width_ * count_) refuse(fmt::format("{} numbers in the .bin", count_), fmt::format("{} bytes", bytes));
    if (width_ != 1 && width_ != 2 && width_ != 4 && width_ != 8)
      refuse("numbers of 1, 2, 4 or 8 bytes", fmt::format("{} bytes", width_));
    for (size_t i = 0; i < items_; i++)
      if (offset(i) > bytes || length(i) * width_ > bytes - offset(i))
        refuse("offsets inside the .bin", fmt::to_string(offset(i)));
  }

  std::filesystem::path prefix_;
  MappedFile index_, numbers_;
  uint8_t code_ = 0;
  size_t items_ = 0, count_ = 0, width_ = 1;
};

// Returns DIR/NAME_ for DIR/NAME_ENDING.
std::optional<std::string> without(const std::filesystem::path& prefix, std::string_view ending) {
  std::string name = prefix.string();
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

// Returns the factor by which the values in the files that begin with `name` were multiplied.
double scale_of(const std::string& name) {
  const std::string note = name + "scale.json";
  std::error_code ignored;
  if (!std::filesystem::exists(note, ignored)) return 1;
  const nlohmann::json there = try_parse_json(read_file(note), note);
  const double scale = there.is_object() && there.contains("scale") && there["scale"].is_number()
                           ? there["scale"].get<double>() : 0;
  if (!(scale > 0 && std::isfinite(scale)))
    throw UserError({note, "curriculum", "{\"scale\": a number above 0}", "something else",
                     "run `megalith analyze` with --deepspeed again, or remove this file if the values must not be "
                     "divided"});
  return scale;
}

std::vector<double> read_values(const std::filesystem::path& prefix) {
  const IndexFile file(prefix);
  std::vector<double> values(file.items());
  for (size_t i = 0; i < values.size(); i++) values[i] = file.only(i, "sample");
  return values;
}

// Reads the two files that DeepSpeed's sampler reads: the distinct values, and the samples with each value.
std::vector<double> read_by_value(const std::string& name) {
  for (std::string_view ending : {kDistinct, kSamples})
    if (!is_shard(name + std::string(ending)))
      throw UserError({fmt::format("{}{}.idx", name, ending), "curriculum",
                       fmt::format("both {} and {}, each as .bin and .idx", kDistinct, kSamples), "no such file",
                       fmt::format("copy it to this folder, or use {}{}", name, kValues)});
  const IndexFile distinct(name + std::string(kDistinct)), samples(name + std::string(kSamples));
  if (distinct.items() != samples.items())
    samples.refuse(fmt::format("the same number of items as in {} ({})", kDistinct, distinct.items()),
                   fmt::to_string(samples.items()));
  std::vector<double> values(samples.count());  // values of samples 0, 1, ... if each sample is listed once
  std::vector<bool> listed(values.size());
  double highest = -1;
  for (size_t item = 0; item < samples.items(); item++) {
    const double value = distinct.only(item, "item");
    for (size_t place = 0; place < samples.length(item); place++) {
      const double sample = samples.at(item, place);
      if (!(sample >= 0 && sample < 9e15 && sample == std::floor(sample)))
        samples.refuse("sample numbers of at least 0", fmt::format("{} in item {}", sample, item));
      highest = std::max(highest, sample);
      if (sample >= static_cast<double>(values.size())) continue;  // a lower sample is missing: reported below
      const auto i = static_cast<size_t>(sample);
      if (listed[i]) samples.refuse("each sample once", fmt::format("sample {} twice", i));
      listed[i] = true;
      values[i] = value;
    }
  }
  if (highest >= static_cast<double>(values.size()))
    samples.refuse(fmt::format("each sample from 0 to {:.0f}", highest),
                   fmt::format("no sample {}", std::ranges::find(listed, false) - listed.begin()));
  return values;
}

}  // namespace

bool is_deepspeed_index(const std::filesystem::path& name) {
  return is_shard(shard_prefix(name));
}

std::vector<double> read_deepspeed_values(const std::filesystem::path& name) {
  const std::filesystem::path prefix = shard_prefix(name);
  if (auto merged = without(prefix, kMerged))
    throw UserError({shard_file(prefix, ".idx").string(), "curriculum", "a file with values",
                     "a file with percentiles only",
                     fmt::format("use {}{}", *merged, is_shard(*merged + std::string(kValues)) ? kValues : kDistinct)});
  auto by_value = without(prefix, kDistinct);
  if (!by_value) by_value = without(prefix, kSamples);
  std::vector<double> values = by_value ? read_by_value(*by_value) : read_values(prefix);
  auto of_metric = by_value ? by_value : without(prefix, kValues);
  const double scale = of_metric ? scale_of(*of_metric) : 1;
  for (double& value : values) value /= scale;
  return values;
}

}  // namespace megalith
