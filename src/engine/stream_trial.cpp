#include "engine/stream_trial.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <functional>
#include <future>
#include <vector>

#include "base/error.h"
#include "base/new_file.h"
#include "base/stopwatch.h"
#include "engine/block_store.h"
#include "engine/chunk_stream.h"
#include "engine/threads.h"
#include "memory/disk_speed.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

// Chunks of an array: a small layer, and one that uses each staging slot several times.
constexpr int64_t kFew = 6, kMany = 24;
constexpr int kTimes = 7;

double typical_seconds(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int time = 0; time < kTimes; time++) seconds.push_back(seconds_of(work));
  return median(std::move(seconds));
}

// Measures `work(chunks)`, which moves that many chunks of `arrays` arrays.
TransferSpeed try_transfer(int64_t arrays, const std::function<void(int64_t chunks)>& work) {
  const double few = typical_seconds([&] { work(kFew); }), many = typical_seconds([&] { work(kMany); });
  const auto bytes = [&](int64_t chunks) { return static_cast<double>(arrays * chunks * kSpillChunk); };
  // More chunks should take longer. If they did not, something disturbed the disk: then count all time as transfer time.
  const double rate = many > few ? (bytes(kMany) - bytes(kFew)) / (many - few) : bytes(kMany) / many;
  return {.wait_s = std::max(1e-6, few - bytes(kFew) / rate), .bytes_per_s = rate};
}

StreamSpeeds try_here(const std::filesystem::path& folder, const IoMethod& way) {
  enum : int64_t { mean, square, value, gradient, kinds };
  SpillFile file(folder / fmt::format("trial-{}{}", random_hex(8), kSpillSuffix), kinds * kMany * kSpillChunk,
                 way);
  const auto queue = make_disk_queue(way, kSpillDepth);
  const at::Tensor values = disk_buffer(kMany * kStateChunk);
  std::fill_n(values.mutable_data_ptr<float>(), values.numel(), 0.5f);
  const auto extent = [&](int64_t kind, int64_t chunks) {
    return BlockStore::Extent{&file, kind * kMany * kSpillChunk, {chunks * kStateChunk}};
  };
  const auto whole = [&](int64_t kind, int64_t chunks) {
    return std::vector<BlockStore::Whole>{{extent(kind, chunks), values.mutable_data_ptr<float>()}};
  };
  for (int64_t kind = 0; kind < kinds; kind++) write_whole(*queue, whole(kind, kMany));  // the first write is slower
  const auto adamw = make_optimizer({});
  const ParameterFacts parameter{"any", {kStateChunk}};
  const auto load_updated = [&](Staging staging) {
    return [&, staging](int64_t chunks) {
      const std::vector<BlockStore::Array> arrays{{extent(mean, chunks), true, true},
                                                  {extent(square, chunks), true, true},
                                                  {extent(value, chunks), true, true, values.mutable_data_ptr<float>()},
                                                  {extent(gradient, chunks), true, false}};
      const BlockStore::TileWork update = [&](const BlockStore::Tile& tile, std::span<std::byte* const> chunk) {
        const auto of = [&](int64_t kind) {
          auto* const all = reinterpret_cast<float*>(chunk[static_cast<size_t>(kind)]);
          return std::span(all + tile.first, static_cast<size_t>(tile.count));
        };
        adamw->apply({&parameter, 0, of(value), of(gradient), {of(mean), of(square)}}, {}, {});
      };
      const std::vector<std::vector<BlockStore::Array>> parts{arrays};
      ChunkStream(*queue, parts, ChunkStream::By::anyone, staging, update).run();
    };
  };
  constexpr int64_t kMoved = 7;  // four arrays are read, three are written
  return {.load = try_transfer(1, [&](int64_t chunks) { read_whole(*queue, whole(value, chunks)); }),
          .offload_gradient = try_transfer(1, [&](int64_t chunks) { write_whole(*queue, whole(gradient, chunks)); }),
          .load_updated = try_transfer(kMoved, load_updated(Staging::ample)),
          .load_updated_scarce = try_transfer(kMoved, load_updated(Staging::scarce))};
}

}  // namespace

StreamSpeeds try_streams(const std::filesystem::path& folder, const IoMethod& way) {
  return std::async(std::launch::async, [&] {  // a thread of its own, like a lane
           c10::InferenceMode no_graph;
           keep_to_one_thread();
           return try_here(folder, way);
         }).get();
}

}  // namespace megalith
