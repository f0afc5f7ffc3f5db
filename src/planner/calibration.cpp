#include "planner/calibration.h"

#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "memory/allocator.h"
#include "memory/machine.h"
#include "model/layers/vocabulary_loss.h"

namespace megalith {
namespace {

double seconds_of(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Median time of one call over about `budget` seconds, at least three calls after one to warm up.
double typical_seconds(const std::function<void()>& work, double budget) {
  work();
  std::vector<double> times;
  double spent = 0;
  while (times.size() < 3 || (spent < budget && times.size() < 200)) {
    times.push_back(seconds_of(work));
    spent += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Floating-point operations a second of [n,k] x [k,m] and of the two products of its backward.
double product_speed(int64_t n, int64_t k, int64_t m) {
  at::Tensor x = at::ones({n, k}), w = at::ones({k, m}), y = at::ones({n, m}), gw = at::ones({k, m}), gx = at::ones({n, k});
  double s = typical_seconds(
      [&] {
        at::mm_out(y, x, w);
        gw.addmm_(x.t(), y);
        at::mm_out(gx, y, w.t());
      },
      0.15);
  return 6.0 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(m) / s;
}

double memory_speed() {
  const int64_t n = int64_t{16} << 20;
  at::Tensor a = at::ones({n}), b = at::ones({n}), c = at::ones({n});
  double s = typical_seconds([&] { at::add_out(c, a, b); }, 0.2);
  return 3.0 * 4.0 * static_cast<double>(n) / s;
}

// Bytes a second written and made durable, over 64 MiB.
double disk_write_speed(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / fmt::format(".megalith-disk-{}.tmp", ::getpid());
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return 0;
  std::vector<char> buffer(size_t{4} << 20, 'm');
  int64_t written = 0;
  double s = seconds_of([&] {
    for (int i = 0; i < 16; i++) {
      ssize_t n = ::write(fd, buffer.data(), buffer.size());
      if (n <= 0) break;
      written += n;
    }
    ::fdatasync(fd);
  });
  ::close(fd);
  ::unlink(path.c_str());
  return written > 0 ? static_cast<double>(written) / s : 0;
}

// Named measurements of this machine, read from and written to the cache file.
class Measurements {
 public:
  explicit Measurements(std::string machine) : machine_(std::move(machine)), path_(calibration_file()) {
    if (path_.empty() || !std::filesystem::exists(path_)) return;
    all_ = nlohmann::json::parse(read_file(path_), nullptr, /*allow_exceptions=*/false);
    if (!all_.is_object()) all_ = nlohmann::json::object();
  }
  double get(const std::string& name, const std::function<double()>& measure) {
    nlohmann::json& mine = all_[machine_];
    if (mine.is_object() && mine.contains(name) && mine[name].is_number() && mine[name].get<double>() > 0)
      return mine[name].get<double>();
    double value = measure();
    mine[name] = value;
    changed_ = true;
    return value;
  }
  // A cache that cannot be written is no reason to stop.
  void save() {
    if (!changed_ || path_.empty()) return;
    try {
      std::filesystem::create_directories(path_.parent_path());
      write_file_atomically(path_, all_.dump(1));
    } catch (const std::exception& e) {
      log::info("calibration not kept: {}", e.what());
    }
  }

 private:
  std::string machine_;
  std::filesystem::path path_;
  nlohmann::json all_ = nlohmann::json::object();
  bool changed_ = false;
};

}  // namespace

std::filesystem::path calibration_file() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "megalith" / "calibration.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "megalith" / "calibration.json";
  return {};
}

MachineSpeeds calibrate(const ModelShape& shape, const MicroBatchShape& micro, int64_t threads,
                        const std::filesystem::path& disk) {
  c10::InferenceMode no_graph;
  Measurements known(fmt::format("{}, {} threads", processor_name(), threads));
  MachineSpeeds speeds;
  speeds.cores = static_cast<int32_t>(threads);
  speeds.memory_bandwidth = known.get("memory", memory_speed);
  speeds.disk_write = known.get("disk write " + std::filesystem::absolute(disk).root_path().string(),
                                [&] { return disk_write_speed(disk); });
  if (speeds.disk_write <= 0) speeds.disk_write = 100e6;  // a directory that cannot be written is found out later
  speeds.disk_read = speeds.disk_write;
  speeds.op_overhead_s = 20e-6;
  // The model's own products; total time over total work gives one effective speed.
  const int64_t N = micro.tokens(), C = shape.hidden, F = shape.arch == Arch::llama ? 2 * shape.ffn : shape.ffn;
  const int64_t X = (shape.heads + 2 * shape.kv_heads) * shape.head_dim();
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(N) * micro.target_fraction));
  const int64_t chunk = std::min(rows, VocabularyLoss::chunk_rows(shape.vocab));
  struct Product {
    int64_t n, k, m;
    double times;
  };
  const double layers = static_cast<double>(shape.layers), chunks = static_cast<double>(rows) / static_cast<double>(chunk);
  const Product products[] = {{N, C, X, layers}, {N, C, C, layers}, {N, C, F, layers}, {N, shape.ffn, C, layers},
                              {chunk, C, shape.vocab, chunks}};
  double work = 0, time = 0;
  for (const Product& p : products) {
    double speed = known.get(fmt::format("product {}x{}x{}", p.n, p.k, p.m), [&] { return product_speed(p.n, p.k, p.m); });
    double flop = p.times * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.m);
    work += flop;
    time += flop / speed;
  }
  speeds.flops = work / time;
  known.save();
  release_cached_memory();
  reset_memory_peak();
  return speeds;
}

}  // namespace megalith
