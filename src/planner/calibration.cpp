#include "planner/calibration.h"

#include <c10/core/InferenceMode.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <thread>

#include "base/new_file.h"
#include "base/stopwatch.h"
#include "config/names.h"
#include "data/batch.h"
#include "engine/block_state.h"
#include "engine/threads.h"
#include "engine/state_pieces.h"
#include "engine/stream_trial.h"
#include "families/blocks.h"
#include "families/family.h"
#include "memory/allocator.h"
#include "memory/disk_speed.h"
#include "memory/machine.h"
#include "model/kernels/blas.h"
#include "model/tensor_ops.h"
#include "planner/links.h"
#include "planner/measurements.h"

namespace megalith {
namespace {

// Median time of one call over about `budget` seconds, after one to warm up. Long calls go on until there are enough for a
// median that a moment's disturbance does not move, or until kPatience is over. `between` is not counted.
constexpr size_t kFew = 3, kEnough = 15, kMany = 50;
constexpr double kPatience = 3;  // seconds
constexpr int kStreamed = 4;     // passes over memory in one call, where threads are started for it
double typical_seconds(const std::function<void()>& work, double budget, const std::function<void()>& between = {}) {
  work();
  std::vector<double> times;
  double spent = 0;
  while (times.size() < kFew || (times.size() < kEnough && spent < kPatience) || (times.size() < kMany && spent < budget)) {
    if (between) between();
    times.push_back(seconds_of(work));
    spent += times.back();
  }
  return median(std::move(times));
}

// Of a model with experts, a layer that has them is measured.
ModelShape with_experts_everywhere(ModelShape shape) {
  shape.experts.dense_first = 0;
  shape.experts.every = 1;
  return shape;
}

// One layer and the head of a model, with weights of their own, ready to run.
class Sample {
 public:
  explicit Sample(const Workload& work) : work_(work) {
    ModelShape one = with_experts_everywhere(work.shape);
    one.layers = 1;
    blocks_ = make_blocks(one);
    const auto compute = at::TensorOptions().dtype(compute_type(work.precision));
    const int64_t N = work.micro.tokens();
    pass_.sequences = work.micro.sequences;
    pass_.length = work.micro.length;
    pass_.visibility = visibility_of(*work.shape.family, row_of(work.objective).has_prefix);
    pass_.prefix_B.assign(static_cast<size_t>(work.micro.sequences), work.micro.length / 2);
    pass_.dropout = work.shape.dropout.any();
    const auto targets = static_cast<int64_t>(static_cast<double>(N) * work.micro.target_fraction);
    pass_.targets_N = tensor::full({N}, kNoTarget, at::kLong);
    pass_.targets_N.narrow(0, 0, std::max<int64_t>(1, targets)).zero_();
    x_NC_ = tensor::ones({N, work.shape.hidden}, compute);
    x_NC_.select(1, 0).fill_(2);  // a row of equal values would have no variance to normalise
    if (one.experts.any()) x_NC_.normal_();  // tokens for every expert
    flushed_ = tensor::ones({int64_t{16} << 20});
  }

  double layer_seconds() {
    Block& layer = *blocks_[1];
    bind(layer);
    return typical_seconds(
        [&] {
          Tape tape;
          at::Tensor y_NC = layer.forward(x_NC_, pass_, &tape);
          layer.backward(y_NC, pass_, tape);
        },
        0.3, [&] { flush(); });
  }

  double head_seconds() {
    auto& head = static_cast<HeadBlock&>(*blocks_.back());
    bind(head);
    at::Tensor values, gradients;
    if (work_.shape.tied) {
      values = tensor::full({work_.shape.vocab, work_.shape.hidden}, 0.01, x_NC_.options());
      gradients = tensor::zeros({work_.shape.vocab, work_.shape.hidden}, at::kFloat);
      head.tie({values, gradients});
    }
    at::Tensor gx_NC;
    return typical_seconds([&] { head.loss_and_gradient(x_NC_, pass_, gx_NC); }, 0.3, [&] { flush(); });
  }

 private:
  void bind(Block& block) {
    values_ = tensor::full({block.spec().flat_size}, 0.01, x_NC_.options());
    if (work_.shape.experts.any()) values_.normal_(0, 0.02);
    gradients_ = tensor::zeros({block.spec().flat_size}, at::kFloat);
    block.bind(values_, gradients_);
  }
  // In a step every block finds caches full of the others' data.
  void flush() { flushed_.add_(1); }

  Workload work_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Pass pass_;
  at::Tensor x_NC_, values_, gradients_, flushed_;
};

std::string describe(const Workload& w) {
  const Experts& x = w.shape.experts;
  const std::string experts = x.any() ? fmt::format(" experts {} of {}x{}+{} by {} capacity {}", x.top_k, x.count, x.ffn,
                                                    x.shared, name_of(x.router), x.capacity)
                                      : "";
  return fmt::format("{} {}x{}{} heads {}/{} vocab {}{} batch {}x{} targets {:.3f} {} {} dropout {}/{}", w.shape.family->name,
                     w.shape.hidden, w.shape.ffn, experts, w.shape.heads, w.shape.kv_heads, w.shape.vocab,
                     w.shape.tied ? " tied" : "", w.micro.sequences, w.micro.length, w.micro.target_fraction,
                     name_of(w.precision), name_of(w.objective), w.shape.dropout.residual, w.shape.dropout.attention);
}

double memory_speed() {
  const int64_t n = int64_t{16} << 20;
  at::Tensor a = tensor::ones({n}), b = tensor::ones({n}), c = tensor::ones({n});
  double s = typical_seconds([&] { tensor::add_out(c, a, b); }, 0.2);
  return 3.0 * 4.0 * static_cast<double>(n) / s;
}

// The same by one thread on every core of the host.
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
  const double s = typical_seconds([&] {
    std::vector<std::jthread> threads;
    for (size_t core = 0; core < cores; core++) threads.emplace_back(stream, core);
  }, 0.4);
  return 3.0 * 4.0 * static_cast<double>(each) * static_cast<double>(cores) * kStreamed / s;
}

// Bytes a second written and made durable, over 64 MiB.
double disk_write_speed(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / fmt::format(".megalith-disk-{}.tmp", random_hex(8));
  int fd = create_file(path, kPrivateMode);
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

// The folder itself, or what of its path there is already: a prediction makes no folders.
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
      if (!measured) measured = measure_disk(folder, way);
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

std::string buffers_of(const std::string& what) { return "buffers of " + what; }

// Of the process without what it may give back.
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
  if (speeds.disk_write <= 0) speeds.disk_write = 100e6;  // a directory that cannot be written is found out later
  speeds.disk_read = speeds.disk_write;
  if (!use.spill.empty()) add_spill_speeds(speeds, use.spill, known);
  speeds.op_overhead_s = 20e-6;
  return speeds;
}

double product_speed(const Workload& work, const MachineSpeeds& machine, bool together, Measurements& known) {
  c10::InferenceMode no_graph;
  const std::string what = describe(work);
  std::optional<double> layer, head;
  const auto run = [&] {
    layer = Sample(work).layer_seconds();
    head = Sample(work).head_seconds();
  };
  known.get(buffers_of(what), [&] {
    const double before = settled_bytes();
    run();
    return std::max(1.0, settled_bytes() - before);
  });
  // Ranks of one host slow each other down. Without them, what they measured once is better than what is measured alone.
  const std::string beside = fmt::format(", {} ranks", machine.host_ranks);
  const bool several = machine.host_ranks > 1 && (together || known.find("layer of " + what + beside));
  const auto seconds_of_sample = [&](const std::string& part, const std::optional<double>& seconds) {
    return known.get(part + " of " + what + (several ? beside : ""), [&] {
      if (!seconds) run();
      return *seconds;
    });
  };
  const double layer_s = seconds_of_sample("layer", layer), head_s = seconds_of_sample("head", head);
  MicroBatchShape whole = work.micro;  // a sample drops nothing
  whole.kept = 0;
  const auto facts = block_facts(with_experts_everywhere(work.shape), whole, work.precision);
  // The speed at which the predicted passes over memory and the products together take what was measured.
  double flop = 0, seconds = 0;
  auto count = [&](const BlockFacts& f, double measured, double times) {
    flop += times * (f.forward.flop + f.backward.flop);
    double touched = static_cast<double>(f.forward.touched_bytes + f.backward.touched_bytes);
    seconds += times * std::max(measured / 4, measured - touched / machine.memory_bandwidth);
  };
  count(facts[1], layer_s, static_cast<double>(work.shape.layers));
  count(facts.back(), head_s, 1);
  return flop / seconds;
}

// Keeps what was measured, and leaves nothing of it in memory.
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

Bytes library_buffers(const Workload& work, int64_t threads) {
  Measurements known(threads, /*may_measure=*/false);
  return Bytes(static_cast<int64_t>(known.get(buffers_of(describe(work)), {})));
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
