#include "planner/run_blocks.h"

#include <algorithm>

#include "data/objectives.h"
#include "engine/block_store.h"
#include "families/facts.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

// Returns the largest number of targets of a step, divided by the tokens of a full step. Each sequence has at least one
// target, so many short sequences have more targets than few long ones.
double target_fraction(const PlanInput& input) {
  int64_t most = 0;
  for (const StepShape& shape : input.shapes)
    most = std::max(most, shape.sequences() * most_targets(input.objective, shape.length));
  return static_cast<double>(most) / static_cast<double>(input.batch * input.sequence);
}

MicroBatchShape micro_shape(const PlanInput& input, int64_t sequences, int64_t kept) {
  return {.sequences = sequences,
          .length = input.sequence,
          .target_fraction = row_of(input.objective.kind).few_targets ? target_fraction(input) : 1,
          .micros = input.rank_batch() / sequences,
          .kept = kept,
          .dropping_layers = kept > 0 ? input.dropping_layers : std::vector<int64_t>{},
          .compared = {.sequences = input.batch,
                       .columns = input.objective.comparison().columns,
                       .symmetric = input.objective.symmetric,
                       .ranks = input.layout.data}};
}

// Returns the micro-batch of a step of another shape with the same number of micro-batches. `micro`: that of a full step.
MicroBatchShape reshaped(MicroBatchShape micro, const PlanInput& input, const StepShape& shape) {
  micro.sequences = micro.sequences * shape.sequences() / input.batch;
  micro.length = shape.length;
  micro.kept = shape.kept();
  if (micro.kept > 0) micro.dropping_layers = input.dropping_layers;
  else micro.dropping_layers.clear();
  return micro;
}

// Returns only the part of a layout that decides how large a rank's part of a block is.
Layout inside_blocks(const Layout& layout) {
  return {.data = layout.expert, .context = layout.context, .tensor = layout.tensor, .expert = layout.expert,
          .context_form = layout.context_form};
}

Workload work_keeping(const PlanInput& input, int64_t micro_batch, int64_t kept) {
  return {input.shape, micro_shape(input, micro_batch, kept), input.precision, input.objective.kind, inside_blocks(input.layout)};
}

// Raises the memory of `facts` so that it is also enough for `others`.
void cover(std::vector<BlockFacts>& facts, const std::vector<BlockFacts>& others) {
  for (size_t b = 0; b < facts.size(); b++)
    for (int64_t BlockCosts::* bytes :
         {&BlockCosts::saved_bytes, &BlockCosts::attention_saved_bytes, &BlockCosts::workspace_bytes,
          &BlockCosts::deferred_bytes, &BlockCosts::deferring_workspace_bytes, &BlockCosts::weight_gradient_workspace_bytes})
      facts[b].*bytes = std::max(facts[b].*bytes, others[b].*bytes);
}

// Sets the sizes of optimizer state with one number per element, and the memory to stream a block: see stream_updated in
// engine/residency.cpp.
void describe_streaming(BlockStorage& f, const BlockSpec& spec, int64_t slots, Packing packing, bool narrow,
                        Staging staging) {
  // Arrays by kind, then by part. The kinds are optimizer state, gradient and, in 16 bits, the master. One stream moves all.
  std::vector<std::vector<StoredArray>> staged(static_cast<size_t>(slots) + (narrow ? 2 : 1));
  for (const Segment& part : spec.segments) {
    const SlotSize size = slot_size(spec, packing, part.range);
    const StoredArray slot = stored_slot(size), values{part.range.size()};
    for (size_t kind = 0; kind < staged.size(); kind++)
      staged[kind].push_back(kind < static_cast<size_t>(slots) ? slot : values);
    f.values_disk_bytes += values.disk_bytes();
    f.optimizer_bytes += slots * size.bytes();
    if (part.spread) f.expert_optimizer_bytes += slots * size.bytes();
    f.optimizer_disk_bytes += slots * slot.disk_bytes();
  }
  f.stream_bytes = staging_bytes(staged, staging);
  f.streams_amply = f.stream_bytes == staging_bytes(staged, Staging::ample);
  if (spec.segments.size() == 1) return;
  for (std::vector<StoredArray>& kind : staged) kind.erase(kind.begin());  // keep only experts
  f.call_bytes = staging_bytes(staged, staging);
}

// The same for an optimizer that reads whole parameters. Its state stays in memory, and a block is in memory while it is
// updated.
void describe_whole(BlockStorage& f, const BlockSpec& spec, const Optimizer& optimizer, bool narrow) {
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

LargestKept largest_kept(const PlanInput& input) {
  if (input.dropping_layers.empty()) return {};
  int64_t most = 0, dropping = 0;  // rows of a step
  for (const StepShape& shape : input.shapes) {
    const int64_t rows = shape.sequences() * shape.processed();
    most = std::max(most, rows);
    if (shape.kept() > 0) dropping = std::max(dropping, rows);
  }
  auto of_a_sequence = [&](int64_t rows) { return (rows + input.batch - 1) / input.batch; };
  const int64_t kept = of_a_sequence(most), all = input.sequence;
  return {kept < all ? kept : 0, std::min(of_a_sequence(dropping), all - 1)};
}

Workload workload(const PlanInput& input, int64_t micro_batch) {
  return work_keeping(input, micro_batch, largest_kept(input).most);
}

std::vector<BlockFacts> facts_for(const PlanInput& input, int64_t micro_batch, Staging staging) {
  const LargestKept largest = largest_kept(input);
  const Workload work = work_keeping(input, micro_batch, largest.most);
  // Ranks that divide blocks have equal parts, up to a row or a token.
  const Mesh first(input.layout);
  auto facts_of = [&](const MicroBatchShape& micro) {
    return block_facts(work.shape, micro, work.precision, input.activations, first);
  };
  auto facts = facts_of(work.micro);
  // Cover steps that drop tokens, too: gathering and scattering rows needs additional memory.
  if (largest.dropping > 0 && largest.most == 0) cover(facts, facts_of(micro_shape(input, micro_batch, largest.dropping)));
  // An expert has room for at least one row of every group of tokens, and short sequences make more groups.
  if (input.shape.experts.any())
    for (const StepShape& shape : input.shapes) cover(facts, facts_of(reshaped(work.micro, input, shape)));
  const auto optimizer = make_optimizer({.optimizer = input.optimizer, .momentum = input.momentum});
  const auto specs = list_blocks(input.shape, first);
  const auto slots = static_cast<int64_t>(optimizer->slots({"any", {1, 1}, true}).size());
  const bool narrow = work.precision != Precision::fp32;
  for (size_t b = 0; b < facts.size(); b++) {
    if (narrow) {  // values are read as float32 and converted to 16 bits
      std::vector<StoredArray> values;
      for (const Segment& part : specs[b].segments) values.push_back({part.range.size()});
      facts[b].load_bytes = staging_bytes({values}, staging);
    }
    if (optimizer->statistics_rounds() > 0) describe_whole(facts[b], specs[b], *optimizer, narrow);
    else describe_streaming(facts[b], specs[b], slots, input.optimizer_state, narrow, staging);
    if (b > 0) facts[b].input_offload_bytes = staging_bytes({{{(facts[b - 1].output_bytes + 3) / 4}}}, staging);
  }
  return facts;
}

}  // namespace megalith
