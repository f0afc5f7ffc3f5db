// All-reduces of float32 between the ranks that mpirun started, for bench/comm/collectives.py:
//   all_reduce shared|windows|openmpi BYTES…
// shared: our channel on buffers in a shared region; windows: on ordinary memory; openmpi: MPI_Allreduce, in place.
// Rank 0 prints the median seconds of a call for every size, as one JSON list.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/world.h"

namespace {

using namespace megalith;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Batches of calls, for about half a second in all; short calls in longer batches than a clock's reading costs.
double median_seconds(int64_t bytes, const std::function<void()>& call) {
  const int64_t batch = std::clamp<int64_t>((int64_t{4} << 20) / bytes, 1, 200);
  const int64_t batches = std::clamp<int64_t>((int64_t{1} << 30) / (bytes * batch), 3, 25);
  call();
  std::vector<double> seconds;
  for (int64_t i = 0; i < batches; i++) {
    const double begin = now();
    for (int64_t j = 0; j < batch; j++) call();
    seconds.push_back((now() - begin) / static_cast<double>(batch));
  }
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

void require(bool right, const char* what) {
  if (right) return;
  fmt::print(stderr, "all_reduce: {}\n", what);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  require(argc > 2 && (kind == "shared" || kind == "windows" || kind == "openmpi"), "KIND BYTES…");
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; i++) sizes.push_back(std::atoll(argv[i]));
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());

  int rank = 0, ranks = 0;
  std::unique_ptr<World> world;
  std::unique_ptr<Channel> channel;
  const int fd = kind == "shared" ? memfd_create("bench", 0) : -1;
  require(kind != "shared" || ftruncate(fd, largest) == 0, "no shared memory");
  void* memory = mmap(nullptr, static_cast<size_t>(largest), PROT_READ | PROT_WRITE,
                      kind == "shared" ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
  require(memory != MAP_FAILED, "no memory");
  float* values = static_cast<float*>(memory);
  if (kind == "openmpi") {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  } else {
    world = World::join();
    rank = world->rank();
    ranks = world->size();
    if (kind == "shared") world->share_memory({fd, static_cast<std::byte*>(memory), largest});
    std::vector<int> members;
    for (int r = 0; r < ranks; r++) members.push_back(r);
    channel = std::make_unique<Channel>(world->channel(members, "bench"));
  }
  std::vector<double> medians;
  for (int64_t bytes : sizes) {
    const int64_t count = bytes / 4;
    std::fill(values, values + count, 1.0f);
    const auto call = [&] {
      if (channel) {
        channel->all_reduce(std::span(values, static_cast<size_t>(count)));
      } else {
        MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
    };
    call();
    require(values[0] == static_cast<float>(ranks) && values[count - 1] == static_cast<float>(ranks), "wrong sum");
    medians.push_back(median_seconds(bytes, call));
  }
  if (rank == 0) fmt::print("[{}]\n", fmt::join(medians, ", "));
  channel.reset();
  if (world) {
    world->leave();
  } else {
    MPI_Finalize();
  }
}
