#include "planner/calibration.h"

#include <c10/core/InferenceMode.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/new_file.h"
#include "base/stopwatch.h"
#include "engine/threads.h"
#include "engine/stream_trial.h"
#include "memory/allocator.h"
#include "memory/disk_speed.h"
#include "memory/machine.h"
#include "model/kernels/blas.h"
#include "model/tensor_ops.h"
#include "planner/links.h"
#include "planner/measurements.h"
#include "planner/sample.h"
#include "planner/typical_time.h"

namespace megalith {
namespace {

constexpr int kStreamed = 4;     // passes over memory per call, so that starting the threads takes little of the time

double memory_speed() {
  const int64_t n = int64_t{16} << 20;
  at::Tensor a = tensor::ones({n}), b = tensor::ones({n}), c = tensor::ones({n});
  double s = typical_seconds("memory with all threads", [&] { tensor::add_out(c, a, b); }, 0.2);
  return 3.0 * 4.0 * static_cast<double>(n) / s;
}

// Measures the same with one thread on every core of the host.
double host_memory_speed() {
  const auto cores = static_cast<size_t>(usable_cores());
  const int64_t n = int64_t{16} << 20, each = n / static_cast<int64_t>(cores);
  const at::Tensor a = tensor::ones({n}), b = tensor::ones({n}), c = tensor::ones({n});
  const auto stream = [&](size_t core) {
    c10::InferenceMode no_graph;
    keep_to_one_thread();
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, static_cast<int64_t>(core) * each, each); };
    at::Tensor out = part(c);
    for (int time = 0; time < kStreamed; time++) tensor::add_out(out, part(a), part(b));
  };
  const double s = typical_seconds("memory with all cores", [&] {
    std::vector<std::jthread> threads;
    for (size_t core = 0; core < cores; core++) threads.emplace_back(stream, core);
  }, 0.4);
  return 3.0 * 4.0 * static_cast<double>(each) * static_cast<double>(cores) * kStreamed / s;
}

// Returns bytes per second of writing 64 MiB, with fdatasync; 0 if that fails.
double disk_write_speed(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / fmt::format(".megalith-disk-{}.tmp", random_hex(8));
  const auto not_measured = [&](int error) {
    log::warn("{}: cannot measure the write speed: {}; predicted times assume 100 MB/s", directory.string(),
              std::strerror(error));
    return 0.0;
  };
  int fd = create_file(path, kPrivateMode);
  if (fd < 0) return errno == EACCES || errno == EROFS ? 0 : not_measured(errno);  // the run reports this later
  std::vector<char> buffer(size_t{4} << 20, 'm');
  int64_t written = 0;
  int failed = 0;
  double s = seconds_of([&] {
    for (int i = 0; i < 16 && failed == 0; i++) {
      ssize_t n = ::write(fd, buffer.data(), buffer.size());
      if (n < 0) failed = errno;
      else written += n;
    }
    if (failed == 0 && ::fdatasync(fd) != 0) failed = errno;
  });
  ::close(fd);
  ::unlink(path.c_str());
  return failed != 0 || written == 0 ? not_measured(failed) : static_cast<double>(written) / s;
}

// Returns the folder, or its nearest parent that exists: a prediction does not create folders.
std::filesystem::path existing_part(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  while (!std::filesystem::is_directory(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void add_spill_speeds(MachineSpeeds& speeds, const std::filesystem::path& spill, Measurements& known) {
  const auto folder = existing_part(spill);
  const IoMethod way = choose_io_method(folder);
  const auto remembered = [&](const std::string& what, const std::function<double()>& measure) {
    return known.get(fmt::format("spill {}, disk {}, {} {}", what, disk_identity(folder), way.uring ? "ring" : "threads",
                                 way.direct ? "direct" : "buffered"),
                     measure);
  };
  std::optional<DiskSpeed> measured;
  const auto get = [&](const char* what, double DiskSpeed::*field) {
    return remembered(what, [&] {
      if (!measured) {
        log::info("measuring the speed of the disk of memory.spill (about 5 s, only once)");
        measured = measure_disk(folder, way);
      }
      return (*measured).*field;
    });
  };
  speeds.spill_read = get("read", &DiskSpeed::read);
  speeds.spill_write = get("write", &DiskSpeed::write);
  speeds.spill_mixed = get("mixed", &DiskSpeed::mixed);
  speeds.spill_core_s = get("core", &DiskSpeed::core_s);
  speeds.spill_kernel_s = get("kernel", &DiskSpeed::kernel_s);
  std::optional<StreamSpeeds> tried;
  const auto get_tried = [&](const std::string& op, TransferSpeed StreamSpeeds::*field) {
    const auto part = [&](double TransferSpeed::*of) {
      if (!tried) tried = try_streams(folder, way);
      return (*tried).*field.*of;
    };
    return TransferSpeed{remembered(op + " wait", [&] { return part(&TransferSpeed::wait_s); }),
                         remembered(op + " rate", [&] { return part(&TransferSpeed::bytes_per_s); })};
  };
  speeds.load = get_tried("fetch", &StreamSpeeds::load);
  speeds.offload_gradient = get_tried("stow", &StreamSpeeds::offload_gradient);
  speeds.load_updated = get_tried("renew", &StreamSpeeds::load_updated);
  speeds.load_updated_scarce = get_tried("scarce renew", &StreamSpeeds::load_updated_scarce);
}

// Names the measurement of the library's buffers. Only the samples run, so the name depends only on them.
std::string buffers_of(const Workload& work) {
  const std::string layer = describe(measured_layer(work).sample), head = describe(measured_head(work).sample);
  return "buffers of " + layer + (head == layer ? "" : " and " + head);
}

// Returns the resident bytes of the process after it has freed cached memory.
double settled_bytes() {
  release_cached_memory();
  return static_cast<double>(resident_memory().value);
}

MachineSpeeds machine_speeds(const MachineUse& use, Measurements& known) {
  c10::InferenceMode no_graph;
  MachineSpeeds speeds;
  speeds.cores = static_cast<int32_t>(use.threads);
  speeds.host_ranks = use.host_ranks;
  speeds.memory_bandwidth = known.get("memory", memory_speed);
  if (use.host_ranks > 1) speeds.host_bandwidth = known.get("memory of all cores", host_memory_speed);
  speeds.disk_write = known.get("disk write " + std::filesystem::absolute(use.disk).root_path().string(),
                                [&] { return disk_write_speed(existing_part(use.disk)); });
  if (speeds.disk_write <= 0) speeds.disk_write = 100e6;
  speeds.disk_read = speeds.disk_write;
  if (!use.spill.empty()) add_spill_speeds(speeds, use.spill, known);
  speeds.op_overhead_s = 20e-6;
  return speeds;
}

// Returns the seconds that the matrix products of a block take: the measured time of its sample, minus passes over memory,
// scaled to the block.
double product_seconds(const MeasuredBlock& block, double sample_seconds, double memory_bandwidth) {
  const BlockFacts& f = block.of_sample;
  if (f.forward.flop + f.backward.flop == 0) return 0;
  const double touched = static_cast<double>(f.forward.touched_bytes + f.backward.touched_bytes);
  const double products = std::max(sample_seconds / 4, sample_seconds - touched / memory_bandwidth);
  return products * block.flop() / (f.forward.flop + f.backward.flop);
}

double product_speed(const Workload& work, const MachineSpeeds& machine, bool together, Measurements& known) {
  c10::InferenceMode no_graph;
  const MeasuredBlock layer = measured_layer(work), head = measured_head(work);
  std::optional<double> layer_s, head_s;
  const auto run = [&] {
    layer_s = layer_seconds(layer.sample);
    head_s = head_seconds(head.sample);
  };
  known.get(buffers_of(work), [&] {
    const double before = settled_bytes();
    run();
    return std::max(1.0, settled_bytes() - before);
  });
  // Ranks of one host slow each other down. If the other ranks do not run now, an earlier measurement with them is better
  // than a measurement alone.
  const std::string beside = fmt::format(", {} ranks", machine.host_ranks);
  const std::string what = describe(layer.sample);
  const bool several = machine.host_ranks > 1 && (together || known.find("layer of " + what + beside));
  const auto seconds_of_sample = [&](const std::string& part, const Workload& sample, const std::optional<double>& seconds) {
    return known.get(part + " of " + describe(sample) + (several ? beside : ""), [&] {
      if (!seconds) run();
      return *seconds;
    });
  };
  const double all_layers =
      static_cast<double>(work.shape.layers) *
      product_seconds(layer, seconds_of_sample("layer", layer.sample, layer_s), machine.memory_bandwidth);
  const double whole_head =
      product_seconds(head, seconds_of_sample("head", head.sample, head_s), machine.memory_bandwidth);
  // At this speed, products and predicted passes over memory together take the measured time.
  return (static_cast<double>(work.shape.layers) * layer.flop() + head.flop()) / (all_layers + whole_head);
}

// Saves the measurements and frees the memory that measuring used.
void settle(Measurements& known) {
  known.save();
  release_cached_memory();
  reset_memory_peak();
}

}  // namespace

MachineSpeeds calibrate_machine(const MachineUse& use) {
  Measurements known(use.threads, /*may_measure=*/true);
  const MachineSpeeds speeds = machine_speeds(use, known);
  settle(known);
  return speeds;
}

double calibrate_products(const Workload& work, const MachineSpeeds& machine, bool together) {
  Measurements known(machine.cores, /*may_measure=*/true);
  const double speed = product_speed(work, machine, together, known);
  settle(known);
  return speed;
}

MachineSpeeds calibrate(const Workload& work, const MachineUse& use) {
  MachineSpeeds speeds = calibrate_machine(use);
  speeds.flops = calibrate_products(work, speeds, /*together=*/false);
  return speeds;
}

std::optional<MachineSpeeds> known_speeds(const Workload& work, const MachineUse& use) {
  Measurements known(use.threads, /*may_measure=*/false);
  MachineSpeeds speeds = machine_speeds(use, known);
  speeds.flops = product_speed(work, speeds, /*together=*/false, known);
  return known.complete() ? std::optional(speeds) : std::nullopt;
}

std::string warning_about_speeds(const Workload& work, const MachineUse& use) {
  Measurements known(use.threads, /*may_measure=*/false);
  product_speed(work, machine_speeds(use, known), /*together=*/false, known);
  return known.warning();
}

Bytes library_buffers(const Workload& work, int64_t threads) {
  Measurements known(threads, /*may_measure=*/false);
  return Bytes(static_cast<int64_t>(known.get(buffers_of(work), {})));
}

void start_matrix_library() {
  kernels::free_library_buffers();
  {
    c10::InferenceMode no_graph;
    const at::Tensor a = tensor::ones({512, 512});
    a.mm(a);
  }
  release_cached_memory();
}

MachineSpeeds typical_speeds(int64_t threads) {
  const auto cores = static_cast<double>(threads);
  return {.flops = 50e9 * cores,
          .memory_bandwidth = 10e9,
          .disk_read = 1e9,
          .disk_write = 1e9,
          .spill_read = 2e9,
          .spill_write = 1.5e9,
          .spill_mixed = 2e9,
          .spill_core_s = 0.1e-9,
          .spill_kernel_s = 0.03e-9,
          .op_overhead_s = 20e-6,
          .commit_s = 0,
          .cores = static_cast<int32_t>(threads),
          .links = typical_links()};
}

}  // namespace megalith
