#include "engine/link_trial.h"

#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/stopwatch.h"
#include "engine/block_state.h"
#include "engine/exchange_buffer.h"
#include "layout/cuts.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

constexpr int64_t kColumns = 256;                       // width of the exchanged rows, as float32
constexpr int64_t kFewRows = 8, kManyRows = 4096;       // rows of all ranks; many: 4 MiB, like activations of 1000 tokens
constexpr int64_t kFewNumbers = 64, kManyNumbers = int64_t{8} << 20;  // elements of gradients; many: larger than caches
constexpr int kWarm = 3, kTimesFew = 41, kTimesMany = 11;

// An exchange of some size, and the bytes that this rank sends in it.
struct Trial {
  std::function<void()> exchange;
  int64_t bytes = 0;
};

double typical_seconds(const Trial& trial, int times) {
  for (int time = 0; time < kWarm; time++) trial.exchange();
  std::vector<double> seconds;
  for (int time = 0; time < times; time++) seconds.push_back(seconds_of(trial.exchange));
  return median(std::move(seconds));
}

// `calls`: number of exchanges in one run of the trial.
LinkSpeed speed_of(const Trial& few, const Trial& many, double calls) {
  const double few_s = typical_seconds(few, kTimesFew), many_s = typical_seconds(many, kTimesMany);
  const auto few_bytes = static_cast<double>(few.bytes), many_bytes = static_cast<double>(many.bytes);
  // More bytes should take longer. If they did not, something disturbed the machine: then count all time as transfer time.
  const double rate = many_s > few_s ? (many_bytes - few_bytes) / (many_s - few_s) : many_bytes / many_s;
  return {.latency_s = std::max(1e-7, (few_s - few_bytes / rate) / calls), .bytes_per_s = rate};
}

at::Tensor rows_of(int64_t rows) { return at::ones({rows, kColumns}); }
int64_t row_bytes(int64_t rows) { return rows * kColumns * static_cast<int64_t>(sizeof(float)); }

// An all-gather of rows, then a reduce-scatter.
Trial gather_and_sum(Exchange& ranks, int64_t rows) {
  const auto cuts = cut_points(rows, ranks.size());
  const int64_t mine = cut_point(rows, ranks.size(), ranks.rank() + 1) - cut_point(rows, ranks.size(), ranks.rank());
  return {[&ranks, cuts, x = rows_of(rows)]() mutable {
            ranks.all_gather(x, cuts);
            ranks.reduce_scatter(x, cuts);
          },
          row_bytes(mine * (ranks.size() - 1) + rows - mine)};
}

Trial shift(Exchange& ranks, int64_t rows) {
  return {[&ranks, send = rows_of(rows), receive = rows_of(rows)]() mutable {
            ranks.start_shift(send, receive);
            ranks.finish();
          },
          row_bytes(rows)};
}

Trial all_to_all(Exchange& ranks, int64_t rows) {
  const int64_t each = std::max<int64_t>(1, rows / ranks.size()), all = each * ranks.size();
  return {[&ranks, send = rows_of(all), receive = rows_of(all), cuts = cut_points(all, ranks.size())]() mutable {
            ranks.all_to_all(send, cuts, receive, cuts);
          },
          row_bytes(all - each)};
}

// Uses memory that the ranks of a host share, like gradients.
Trial all_reduce(Channel& ranks, int64_t numbers) {
  MemoryScope scope(AllocationKind::gradients);
  const at::Tensor x = flat_buffer(numbers, at::kFloat);
  zero(x);
  return {[&ranks, x] { ranks.all_reduce(buffer_of(x)); },
          2 * static_cast<int64_t>(x.nbytes()) / ranks.size() * (ranks.size() - 1)};
}

// Sends between pairs of stages, there and back. With an odd number of stages, the last one does nothing.
Trial to_and_fro(Channel& stages, int64_t rows) {
  const int here = stages.place(), other = here ^ 1;
  if (other >= stages.size()) return {[] {}, 0};
  return {[&stages, here, other, x = rows_of(rows)] {
            if (here < other) stages.send(bytes_of(x), other);
            stages.receive(bytes_of(x), other);
            if (here > other) stages.send(bytes_of(x), other);
          },
          2 * row_bytes(rows)};
}

}  // namespace

Links try_links(ProcessGroups& groups) {
  c10::InferenceMode no_graph;
  Links links{};
  const auto keep = [&](Axis axis, const auto& trial, auto& ranks, double calls, int64_t few, int64_t many) {
    links[static_cast<size_t>(axis)] = speed_of(trial(ranks, few), trial(ranks, many), calls);
  };
  const Exchanges inside = groups.inside();
  if (inside.tensor) keep(Axis::tensor, gather_and_sum, *inside.tensor, 2, kFewRows, kManyRows);
  if (inside.context)
    keep(Axis::context, inside.mesh.layout().context_form == ContextForm::ring ? shift : all_to_all, *inside.context, 1, kFewRows, kManyRows);
  if (groups.mesh().layout().replicas() > 1) keep(Axis::data, all_reduce, groups.replicas().all, 1, kFewNumbers, kManyNumbers);
  if (groups.mesh().size(Axis::pipeline) > 1) keep(Axis::pipeline, to_and_fro, groups.pipeline_forward(), 2, kFewRows, kManyRows);
  if (inside.expert) keep(Axis::expert, all_to_all, *inside.expert, 1, kFewRows, kManyRows);
  const std::string first = groups.world().broadcast({reinterpret_cast<const char*>(&links), sizeof links}, 0);
  std::memcpy(&links, first.data(), sizeof links);
  return links;
}

}  // namespace megalith
