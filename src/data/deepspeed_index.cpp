#include "data/deepspeed_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr uint8_t kInt64 = 5;  // the code of what we write

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A number of a type that is known by its code and its width in bytes; nothing where there is no such type.
std::optional<double> number(const char* at, uint8_t code, size_t width) {
  const bool is_signed = code >= 2 && code <= 5;
  switch (width) {
    case 1: return is_signed ? load<int8_t>(at) : load<uint8_t>(at);
    case 2: return is_signed ? load<int16_t>(at) : load<uint16_t>(at);
    case 4: return is_signed ? static_cast<double>(load<int32_t>(at)) : load<uint32_t>(at);
    case 8:
      if (code == 6 || code == 7) return load<double>(at);  // as older versions have it
      return is_signed ? static_cast<double>(load<int64_t>(at)) : static_cast<double>(load<uint64_t>(at));
    default: return std::nullopt;
  }
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Items that are lists of int64.
class Writer {
 public:
  void add(int64_t value) {
    put(numbers_, value);
    open_++;
  }
  void end_item() {
    lengths_.push_back(static_cast<int32_t>(open_));
    open_ = 0;
  }
  void save(const std::filesystem::path& prefix) const {
    std::string index(kShardMagic);
    put(index, uint64_t{1});
    put(index, kInt64);
    put(index, static_cast<uint64_t>(lengths_.size()));
    put(index, static_cast<uint64_t>(lengths_.size() + 1));
    for (int32_t length : lengths_) put(index, length);
    int64_t offset = 0;
    for (int32_t length : lengths_) {
      put(index, offset);
      offset += int64_t{length} * 8;
    }
    for (size_t i = 0; i <= lengths_.size(); i++) put(index, static_cast<int64_t>(i));
    write_file_atomically(shard_file(prefix, ".bin"), numbers_);
    write_file_atomically(shard_file(prefix, ".idx"), index);
  }

 private:
  std::string numbers_;
  std::vector<int32_t> lengths_;
  int64_t open_ = 0;
};

}  // namespace

bool is_deepspeed_index(const std::filesystem::path& name) {
  return is_shard(shard_prefix(name));
}

std::vector<double> read_deepspeed_values(const std::filesystem::path& name) {
  const std::filesystem::path prefix = shard_prefix(name);
  MappedFile index(shard_file(prefix, ".idx")), numbers(shard_file(prefix, ".bin"));
  auto refuse = [&](const std::string& expected, const std::string& got) {
    throw UserError({shard_file(prefix, ".idx").string(), "curriculum", expected, got,
                     "name DeepSpeed's NAME_sample_to_metric"});
  };
  std::string_view text = index.text();
  if (text.size() < kShardHeaderBytes || !text.starts_with(kShardMagic)) refuse("an index of DeepSpeed's", "something else");
  const char* head = text.data() + kShardMagic.size();
  const auto code = load<uint8_t>(head + 8);
  const auto items = load<uint64_t>(head + 9);
  if (load<uint64_t>(head) != 1) refuse("an index of version 1", fmt::to_string(load<uint64_t>(head)));
  if (items > text.size() / 12 || text.size() < kShardHeaderBytes + items * 12) refuse("a whole index", "a torn one");
  const char* lengths = text.data() + kShardHeaderBytes;
  for (size_t i = 0; i < items; i++)
    if (load<int32_t>(lengths + 4 * i) != 1)
      refuse("one number a sample", fmt::format("{} for sample {}", load<int32_t>(lengths + 4 * i), i));
  const size_t width = items > 0 ? numbers.text().size() / items : 1;
  if (numbers.text().size() != width * items)
    refuse(fmt::format("{} numbers in the .bin", items), fmt::format("{} bytes", numbers.text().size()));
  std::vector<double> values;
  for (size_t i = 0; i < items; i++) {
    const auto offset = load<uint64_t>(lengths + 4 * items + 8 * i);
    if (offset > numbers.text().size() - width) refuse("offsets inside the .bin", fmt::to_string(offset));
    auto value = number(numbers.text().data() + offset, code, width);
    if (!value) refuse("numbers of 1, 2, 4 or 8 bytes", fmt::to_string(width));
    values.push_back(*value);
  }
  return values;
}

double write_deepspeed_index(const std::filesystem::path& folder, const std::string& metric, std::span<const double> real) {
  const bool are_whole = std::ranges::all_of(real, [](double v) { return v == std::floor(v) && std::abs(v) < 9e15; });
  const double scale = are_whole ? 1 : 1e6;
  std::vector<int64_t> values;
  for (double value : real) values.push_back(std::llround(std::clamp(value * scale, -9e18, 9e18)));
  Writer of_samples, of_values, samples;
  std::vector<int64_t> rising(values.size());
  std::iota(rising.begin(), rising.end(), int64_t{0});
  std::ranges::stable_sort(rising, {}, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
  for (int64_t value : values) {
    of_samples.add(value);
    of_samples.end_item();
  }
  for (size_t i = 0; i < rising.size(); i++) {
    const int64_t value = values[static_cast<size_t>(rising[i])];
    samples.add(rising[i]);
    if (i + 1 < rising.size() && values[static_cast<size_t>(rising[i + 1])] == value) continue;
    of_values.add(value);
    of_values.end_item();
    samples.end_item();
  }
  std::filesystem::create_directories(folder);
  of_samples.save(folder / (metric + "_sample_to_metric"));
  of_values.save(folder / (metric + "_index_to_metric"));
  samples.save(folder / (metric + "_index_to_sample"));
  return scale;
}

}  // namespace megalith
