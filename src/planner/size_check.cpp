#include "planner/size_check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/units.h"
#include "families/block_spec.h"
#include "families/family.h"
#include "planner/fitting.h"

namespace megalith {
namespace {

// The maximum number of tensors of a model. A list of this length takes about 100 MiB.
constexpr int64_t kMostTensors = int64_t{1} << 17;
// Each stage of a pipeline has a schedule that lists all blocks.
constexpr int64_t kMostBlocksTimesStages = int64_t{1} << 14;
// The time to balance the parts of a pipeline grows with the square of the number of blocks.
constexpr int64_t kMostBlocksSquaredTimesParts = int64_t{1} << 25;
// Sums of bytes are 63-bit numbers. Those of a step stay far below this.
constexpr double kMostBytes = 0x1p60;
// Upper bound of what a block keeps and needs for one token, as a multiple of its widest row.
constexpr double kRowsOfAToken = 64;

// Sizes of a model or of a part of it. They are doubles, so that nothing overflows.
struct ModelSize {
  double parameters = 0, tensors = 0;
  ModelSize operator+(const ModelSize& o) const { return {parameters + o.parameters, tensors + o.tensors}; }
  ModelSize operator-(const ModelSize& o) const { return {parameters - o.parameters, tensors - o.tensors}; }
  ModelSize operator*(double times) const { return {parameters * times, tensors * times}; }
};

// Returns the size of a model with `layers` layers that all have `experts` experts (0: dense).
ModelSize size_of(ModelShape shape, int64_t layers, int64_t experts) {
  shape.layers = layers;
  shape.experts.count = experts;
  shape.experts.every = 1;
  shape.experts.dense_first = 0;
  ModelSize size;
  for (const BlockSpec& block : shape.family->parameters(shape, Mesh()))
    for (const ParameterSpec& parameter : block.parameters) {
      double elements = 1;
      for (int64_t extent : parameter.shape) elements *= static_cast<double>(extent);
      size = size + ModelSize{elements, 1};
    }
  return size;
}

// Returns the size of the whole model. It lists only one layer of each kind, because equal layers and experts have the same
// size.
ModelSize size_of(const ModelShape& shape) {
  const ModelSize ends = size_of(shape, 0, 0);
  const Experts& x = shape.experts;
  int64_t sparse = 0;
  for (int64_t layer = 0; layer < shape.layers; layer++) sparse += x.in_layer(layer) ? 1 : 0;
  if (x.share_layers) sparse = 1;  // the other layers only have a few norms
  const int64_t dense = x.share_layers ? 0 : shape.layers - sparse;
  ModelSize all = ends + (size_of(shape, 1, 0) - ends) * static_cast<double>(dense);
  if (sparse == 0) return all;
  const ModelSize one = size_of(shape, 1, 1), two = size_of(shape, 1, 2);
  return all + (one - ends + (two - one) * static_cast<double>(x.count - 1)) * static_cast<double>(sparse);
}

std::string show_bytes(double bytes) {
  return bytes < kMostBytes ? show(Bytes(static_cast<int64_t>(bytes))) : fmt::format("{:.3g} EiB", bytes / kMostBytes);
}

void check_tensors(const ModelShape& shape, const ModelSize& size) {
  if (size.tensors <= static_cast<double>(kMostTensors)) return;
  const bool experts = shape.experts.any() && shape.experts.count > shape.layers;
  throw UserError({"", experts ? "model.experts.count" : "model.layers",
                   fmt::format("a model of at most {} parameter tensors", kMostTensors),
                   fmt::format("{} layers{}: {:.0f} tensors", shape.layers,
                               shape.experts.any() ? fmt::format(" and {} experts", shape.experts.count) : "", size.tensors),
                   experts ? "use fewer experts or layers" : "use fewer and wider layers"});
}

void check_ops(const PlanInput& input) {
  const int64_t blocks = input.shape.layers + 2, stages = input.layout.pipeline;
  const int64_t parts = stages * input.layout.chunks;
  const int64_t most = std::min(kMostBlocksTimesStages / blocks * input.layout.chunks, kMostBlocksSquaredTimesParts / (blocks * blocks));
  if (stages > 1 && parts > most)
    throw UserError({"", input.layout.chunks > 1 ? "parallel.interleave" : "parallel.pipeline",
                     fmt::format("at most {} parts for a pipeline of {} layers", most, input.shape.layers),
                     fmt::format("{}", parts), "use fewer parts or fewer layers"});
  check_micro_batches(input);
}

// All ranks together hold parameters and gradients at least once, in float32, in memory or on disk. Each rank has its rows
// of a micro-batch in memory.
void check_bytes(const PlanInput& input, const ModelSize& size, int64_t budget) {
  const ModelShape& s = input.shape;
  const auto ranks = static_cast<double>(input.layout.ranks()), host_ranks = static_cast<double>(input.host_ranks);
  const double state = 8 * size.parameters / ranks;
  const double tokens = static_cast<double>(std::max<int64_t>(1, input.micro_batch)) * static_cast<double>(input.sequence) /
                        static_cast<double>(input.layout.context);
  const double rows = 4 * tokens * static_cast<double>(s.hidden) / static_cast<double>(input.layout.tensor);
  const double least = state + rows;
  const auto refuse = [&](const char* key, const std::string& got, const char* hint) {
    throw UserError({"", key,
                     fmt::format("at least {} for parameters, gradients and one activation ({} parameters, {:.0f} tokens{})",
                                 show_bytes(host_ranks * least), show_count(static_cast<int64_t>(size.parameters)), tokens,
                                 input.host_ranks > 1 ? fmt::format(", {} ranks", input.host_ranks) : ""),
                     got, hint});
  };
  const Experts& x = s.experts;
  const double widest = static_cast<double>(std::max({s.hidden, s.ffn, s.attention_width(), x.ffn * std::max<int64_t>(1, x.top_k)}));
  const double most = 4 * kRowsOfAToken * tokens * widest * (static_cast<double>(s.layers) + 2) *
                          static_cast<double>(input.rank_batch() / std::max<int64_t>(1, input.micro_batch)) +
                      64 * size.parameters;
  if (most > kMostBytes)
    refuse("memory.ram", show(Bytes(input.host_ranks * budget)), "use a smaller model, data.sequence or train.micro_batch");
  if (input.memory.spill.empty()) return;
  std::error_code unknown;
  std::filesystem::path folder = std::filesystem::absolute(input.memory.spill);
  while (!std::filesystem::exists(folder, unknown) && folder.has_relative_path()) folder = folder.parent_path();
  const auto space = std::filesystem::space(folder, unknown);
  if (unknown || host_ranks * least <= static_cast<double>(input.host_ranks * budget) + static_cast<double>(space.available)) return;
  refuse("memory.spill",
         fmt::format("{} of memory and {} of disk", show(Bytes(input.host_ranks * budget)),
                     show(Bytes(static_cast<int64_t>(space.available)))),
         "use a smaller model, or a directory on a larger disk");
}

}  // namespace

void check_plan_size(const PlanInput& input, int64_t budget) {
  const ModelSize size = size_of(input.shape);
  check_tensors(input.shape, size);
  check_ops(input);
  check_bytes(input, size, budget);
}

}  // namespace megalith
