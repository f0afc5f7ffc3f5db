#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "data/deepspeed_index.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr uint8_t kInt64 = 5;  // the type code that we write

// Writes lists of int64. `each_number` calls its argument with every number, `each_length` with the length of every
// list, in order. Both may be called several times, so that nothing must be kept in memory.
class Lists {
 public:
  template <class Numbers, class Lengths>
  Lists(const std::filesystem::path& prefix, const Numbers& each_number, const Lengths& each_length)
      : numbers_(shard_file(prefix, ".bin")), index_(shard_file(prefix, ".idx")) {
    each_number([&](int64_t number) { numbers_.put(number); });
    numbers_.end();
    uint64_t lists = 0;
    each_length([&](size_t) { lists++; });
    index_.put(kShardMagic);
    index_.put(uint64_t{1});
    index_.put(kInt64);
    index_.put(lists);
    index_.put(lists + 1);
    each_length([&](size_t length) { index_.put(static_cast<int32_t>(length)); });
    int64_t offset = 0;
    each_length([&](size_t length) {
      index_.put(offset);
      offset += static_cast<int64_t>(length * sizeof(int64_t));
    });
    for (uint64_t i = 0; i <= lists; i++) index_.put(static_cast<int64_t>(i));
    index_.end();
  }
  void forget_old() const {  // removes old files of this name: without an .idx there is no index
    std::error_code ignored;
    std::filesystem::remove(index_.path(), ignored);
  }
  void give_names() {
    numbers_.give_name();
    index_.give_name();
  }

 private:
  AtomicFile numbers_, index_;
};

// Returns the factor that makes values whole numbers: 1 for whole numbers, a million for others, or less if the products
// would exceed 64 bits.
double scale_for(const std::string& metric, std::span<const double> real) {
  constexpr double kMost = 9.2e18;
  double largest = 0;
  for (double value : real) largest = std::max(largest, std::abs(value));
  if (largest > kMost)
    throw UserError({"", "--deepspeed", fmt::format("values of {} that fit into 64-bit integers", metric),
                     fmt::format("{:g}", largest), "divide the values, or remove --deepspeed"});
  double scale = std::ranges::all_of(real, [](double v) { return v == std::floor(v); }) ? 1 : 1e6;
  while (largest * scale > kMost) scale /= 10;
  return scale;
}

}  // namespace

void make_deepspeed_folder(const std::filesystem::path& folder) {
  std::error_code error, ignored;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  throw UserError({folder.string(), "--deepspeed", "a folder",
                   std::filesystem::is_regular_file(folder, ignored) ? "a file" : error.message(), "use another folder"});
}

double write_deepspeed_index(const std::filesystem::path& folder, const std::string& metric, std::span<const double> real) {
  make_deepspeed_folder(folder);
  const double scale = scale_for(metric, real);
  auto value = [&](int64_t sample) { return std::llround(real[static_cast<size_t>(sample)] * scale); };
  std::vector<int64_t> rising(real.size());
  std::iota(rising.begin(), rising.end(), int64_t{0});
  // Sorts equal values by sample. A stable sort would need half as much memory again.
  std::ranges::sort(rising, {}, [&](int64_t sample) { return std::pair(value(sample), sample); });
  auto each_run = [&](auto visit) {  // visits the samples of each distinct value
    for (auto begin = rising.cbegin(), end = begin; begin != rising.cend(); begin = end) {
      const int64_t of_all = value(*begin);
      end = std::find_if(begin, rising.cend(), [&](int64_t sample) { return value(sample) != of_all; });
      visit(std::span(begin, end));
    }
  };
  auto each_sample = [&](auto visit) { std::ranges::for_each(rising, visit); };
  Lists of_samples(
      folder / (metric + "_sample_to_metric"),
      [&](auto put) { for (size_t i = 0; i < real.size(); i++) put(value(static_cast<int64_t>(i))); },
      [&](auto put) { for (size_t i = 0; i < real.size(); i++) put(1); });
  Lists distinct(
      folder / (metric + "_index_to_metric"), [&](auto put) { each_run([&](auto run) { put(value(run[0])); }); },
      [&](auto put) { each_run([&](auto) { put(1); }); });
  Lists samples(folder / (metric + "_index_to_sample"), each_sample,
                [&](auto put) { each_run([&](auto run) { put(run.size()); }); });
  for (Lists* lists : {&of_samples, &distinct, &samples}) lists->forget_old();
  write_file_atomically(folder / (metric + "_scale.json"), print_json(nlohmann::json{{"scale", scale}}) + '\n');
  for (Lists* lists : {&of_samples, &distinct, &samples}) lists->give_names();
  sync_directory(folder);
  return scale;
}

}  // namespace megalith
