#include "planner/run_blocks.h"

#include <algorithm>
#include <limits>

#include "config/resolve_layout.h"
#include "data/objectives.h"
#include "data/step_shapes.h"
#include "engine/block_store.h"
#include "families/facts.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

using Shapes = std::vector<StepShape>;  // that come in a run

Shapes shapes_of(const Config& config) {
  Shapes shapes;
  for (const auto& [_, shape] : StepShapes(config).changes(std::numeric_limits<int64_t>::max())) shapes.push_back(shape);
  return shapes;
}

// Targets of a step, at the most, by the tokens of a full one: many short sequences have more than few long ones, as each
// has at least one.
double target_fraction(const Config& config, const Shapes& shapes) {
  int64_t most = 0;
  for (const StepShape& shape : shapes)
    most = std::max(most, shape.sequences() * most_targets(config.objective, shape.length));
  return static_cast<double>(most) / static_cast<double>(config.train.batch * config.data.sequence);
}

MicroBatchShape micro_shape(const Config& config, const Shapes& shapes, int64_t sequences, int64_t kept) {
  return {.sequences = sequences,
          .length = config.data.sequence,
          .target_fraction = config.objective.kind == Objective::masked ? target_fraction(config, shapes) : 1,
          .micros = rank_batch(config) / sequences,
          .kept = kept,
          .dropping_layers = kept > 0 ? config.token_dropping.layers_of(config.model.shape.layers) : std::vector<int64_t>{}};
}

// A full one's `micro`, as steps of another shape have it: as many micro-batches.
MicroBatchShape reshaped(MicroBatchShape micro, const Config& config, const StepShape& shape) {
  micro.sequences = micro.sequences * shape.sequences() / config.train.batch;
  micro.length = shape.length;
  micro.kept = shape.kept();
  if (micro.kept > 0) micro.dropping_layers = config.token_dropping.layers_of(config.model.shape.layers);
  else micro.dropping_layers.clear();
  return micro;
}

LargestKept largest_kept(const Config& config, const Shapes& shapes) {
  if (!config.token_dropping.on()) return {};
  int64_t most = 0, dropping = 0;  // rows of a step
  for (const StepShape& shape : shapes) {
    const int64_t rows = shape.sequences() * shape.processed();
    most = std::max(most, rows);
    if (shape.kept() > 0) dropping = std::max(dropping, rows);
  }
  auto of_a_sequence = [&](int64_t rows) { return (rows + config.train.batch - 1) / config.train.batch; };
  const int64_t kept = of_a_sequence(most), all = config.data.sequence;
  return {kept < all ? kept : 0, std::min(of_a_sequence(dropping), all - 1)};
}

Workload work_keeping(const Config& config, const Shapes& shapes, int64_t micro_batch, int64_t kept) {
  return {config.model.shape, micro_shape(config, shapes, micro_batch, kept), config.train.precision, config.objective.kind};
}

// Memory for steps of both kinds.
void cover(std::vector<BlockFacts>& facts, const std::vector<BlockFacts>& others) {
  for (size_t b = 0; b < facts.size(); b++)
    for (int64_t BlockFacts::* bytes :
         {&BlockFacts::saved_bytes, &BlockFacts::attention_saved_bytes, &BlockFacts::workspace_bytes,
          &BlockFacts::deferred_bytes, &BlockFacts::deferring_workspace_bytes, &BlockFacts::weight_gradient_workspace_bytes})
      facts[b].*bytes = std::max(facts[b].*bytes, others[b].*bytes);
}

// Optimizer state of one number an element, and what the engine's streaming of a block takes: see engine/model_spill.cpp.
void describe_streaming(BlockFacts& f, const BlockSpec& spec, int64_t slots, Packing packing, bool narrow,
                        Staging staging) {
  // The optimizer's, then the gradient; 16 bits: and the master. By kind and part: one stream takes all.
  std::vector<std::vector<StoredArray>> staged(static_cast<size_t>(slots) + (narrow ? 2 : 1));
  for (const FlatPart& part : spec.parts) {
    const SlotFormat layout(spec, packing, part.range);
    const StoredArray slot = stored_slot(layout), values{part.range.size()};
    for (size_t kind = 0; kind < staged.size(); kind++)
      staged[kind].push_back(kind < static_cast<size_t>(slots) ? slot : values);
    f.values_disk_bytes += values.disk_bytes();
    f.optimizer_bytes += slots * layout.slot_bytes();
    if (part.spread) f.expert_optimizer_bytes += slots * layout.slot_bytes();
    f.optimizer_disk_bytes += slots * slot.disk_bytes();
  }
  f.stream_bytes = staging_bytes(staged, staging);
  f.streams_amply = f.stream_bytes == staging_bytes(staged, Staging::ample);
  if (spec.parts.size() == 1) return;
  for (std::vector<StoredArray>& kind : staged) kind.erase(kind.begin());  // experts alone
  f.call_bytes = staging_bytes(staged, staging);
}

// State of another form, of an optimizer that looks at whole parameters: it stays in memory, and so does a block while
// it is updated.
void describe_whole(BlockFacts& f, const BlockSpec& spec, const Optimizer& optimizer, bool narrow) {
  f.optimizer_streams = false;
  f.stream_bytes = (narrow ? 8 : 4) * spec.flat_size;
  f.values_disk_bytes = StoredArray{spec.flat_size}.disk_bytes();
  for (const ParameterSpec& p : spec.parameters)
    for (const SlotSpec& slot : optimizer.slots({p.name, p.shape, p.decays}))
      f.optimizer_bytes += 4 * (slot.extent == SlotExtent::element ? p.size()
                                : slot.extent == SlotExtent::row   ? p.shape.front()
                                                                   : p.shape.back());
}

}  // namespace

LargestKept largest_kept(const Config& config) { return largest_kept(config, shapes_of(config)); }

int64_t rank_batch(const Config& config) { return config.train.batch / std::max<int64_t>(1, config.parallel.data); }

int32_t micros_of(const Config& config, int64_t micro_batch) {
  return static_cast<int32_t>(rank_batch(config) / micro_batch);
}

Workload workload(const Config& config, int64_t micro_batch) {
  const Shapes shapes = shapes_of(config);
  return work_keeping(config, shapes, micro_batch, largest_kept(config, shapes).most);
}

std::vector<BlockFacts> facts_for(const Config& config, int64_t micro_batch, Staging staging) {
  const Shapes shapes = shapes_of(config);
  const LargestKept largest = largest_kept(config, shapes);
  const Workload work = work_keeping(config, shapes, micro_batch, largest.most);
  // Ranks that share blocks have equal parts, but for a row or a token here and there.
  const Mesh first(layout_of(config));
  auto facts_of = [&](const MicroBatchShape& micro) {
    return block_facts(work.shape, micro, work.precision, config.train.activations, first);
  };
  auto facts = facts_of(work.micro);
  // Layers that drop hold more beside what they keep than those that do not.
  if (largest.dropping > 0 && largest.most == 0) cover(facts, facts_of(micro_shape(config, shapes, micro_batch, largest.dropping)));
  // An expert has room for one row at least of every group of tokens: short sequences make more groups.
  if (config.model.shape.experts.any())
    for (const StepShape& shape : shapes) cover(facts, facts_of(reshaped(work.micro, config, shape)));
  const auto optimizer = make_optimizer(config.train);
  const auto specs = list_blocks(config.model.shape, first);
  const auto slots = static_cast<int64_t>(optimizer->slots({"any", {1, 1}, true}).size());
  const bool narrow = work.precision != Precision::fp32;
  for (size_t b = 0; b < facts.size(); b++) {
    if (narrow) {  // they come as float32 and are narrowed on the way
      std::vector<StoredArray> values;
      for (const FlatPart& part : specs[b].parts) values.push_back({part.range.size()});
      facts[b].load_bytes = staging_bytes({values}, staging);
    }
    if (optimizer->statistics_rounds() > 0) describe_whole(facts[b], specs[b], *optimizer, narrow);
    else describe_streaming(facts[b], specs[b], slots, config.train.optimizer_state, narrow, staging);
    if (b > 0) facts[b].input_offload_bytes = staging_bytes({{{(facts[b - 1].output_bytes + 3) / 4}}}, staging);
  }
  return facts;
}

}  // namespace megalith
