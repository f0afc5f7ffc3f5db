// Schedules of random shapes for property tests.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "schedule/passes/training_step.h"
#include "schedule/passes/input_offload.h"
#include "schedule/passes/save.h"
#include "schedule/passes/residency.h"
#include "schedule/ops/all.h"

namespace megalith {

using Random = std::mt19937_64;

inline int32_t pick(Random& random, int32_t low, int32_t high) {  // both included
  return std::uniform_int_distribution<int32_t>(low, high)(random);
}

// Makes an embedding, layers and a head. Their facts are small primes, so that a sum shows what it is made of.
inline std::vector<BlockFacts> make_blocks(int32_t count, bool tied) {
  std::vector<BlockFacts> blocks(static_cast<size_t>(count));
  for (int32_t b = 0; b < count; b++) {
    BlockFacts& block = blocks[b];
    block.kind = b == 0 ? BlockKind::embedding : b == count - 1 ? BlockKind::head : BlockKind::layer;
    block.name = b == 0 ? "embedding" : b == count - 1 ? "head" : "layer " + std::to_string(b - 1);
    block.parameters = 1000 + b;
    block.optimizer_bytes = 8 * block.parameters;
    block.forward.flop = 2e6;
    block.backward.flop = 4e6;
    block.forward.touched_bytes = 3000;
    block.backward.touched_bytes = 5000;
    block.saved_bytes = b == count - 1 ? 0 : 701;
    block.attention_saved_bytes = b == count - 1 ? 0 : 307;
    block.attention = {7e5, 1100};
    block.output = {5e5, 700};
    block.output_bytes = b == count - 1 ? 0 : 101;
    block.workspace_bytes = 31;
    block.sparse_gradient_bytes = tied && b == 0 ? 13 : 0;
    block.stream_bytes = 17;
    block.weight_flop = block.kind == BlockKind::layer ? 2e6 : 0;
    block.deferred_bytes = block.kind == BlockKind::layer ? 503 : 0;
    block.deferring_workspace_bytes = -211;
    block.weight_gradient_workspace_bytes = 19;
    block.backward_uses_parameters = b != 0;
  }
  if (tied) blocks.back().tied_to = 0;
  return blocks;
}

// Makes the loss a function of the whole batch.
inline void score_batch(std::vector<BlockFacts>& blocks) {
  BlockFacts& head = blocks.back();
  head.scores_batch = true;
  head.tied_to = kNoBlock;
  blocks.front().sparse_gradient_bytes = 0;
  head.output_bytes = 43;
  head.batch_workspace_bytes = 59;
  head.batch = {3e5, 900};
}

// Makes `least` to `most` blocks. One model in four has a loss that is a function of the whole batch.
inline std::vector<BlockFacts> random_blocks(Random& random, int32_t least, int32_t most) {
  auto blocks = make_blocks(pick(random, least, most), pick(random, 0, 1) == 1);
  if (pick(random, 0, 3) == 0) score_batch(blocks);
  return blocks;
}

// Returns the step with its updates on another lane, as a pass may place them. So more ops can race.
inline Schedule with_updates_aside(Schedule step) {
  for (Op& op : step.ops)
    if (op.kind == ops::optimizer_step) op.lane = Lane::send;
  return step;
}

// Gives each block a random placement. At least one block is spilled.
inline std::vector<Placement> random_placement(Random& random, size_t blocks) {
  std::vector<Placement> placement(blocks);
  for (Placement& p : placement) p = static_cast<Placement>(pick(random, 0, 2));
  Placement& one = placement[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(blocks) - 1))];
  if (one == Placement::in_memory) one = Placement::on_disk;
  return placement;
}

// Each layer keeps all, its attention half, its input, or nothing if the layer before can make its input again.
inline std::vector<Keep> random_keep(Random& random, const std::vector<BlockFacts>& blocks) {
  std::vector<Keep> keep(blocks.size(), Keep::all);
  for (size_t b = 1; b + 1 < blocks.size(); b++) {
    keep[b] = static_cast<Keep>(pick(random, 0, keep[b - 1] == Keep::input || keep[b - 1] == Keep::none ? 3 : 2));
    if (keep[b] == Keep::attention && blocks[b].packs_input) keep[b] = Keep::input;
  }
  return keep;
}

inline Schedule random_step(Random& random, std::vector<BlockFacts> blocks, int32_t micros, RankLayout layout = {}) {
  auto keep = pick(random, 0, 1) == 1 ? random_keep(random, blocks) : std::vector<Keep>();
  return training_step(std::move(blocks), micros, static_cast<ComputeOrder>(pick(random, 0, 1)), std::move(keep),
                       std::move(layout));
}

// Offloads the inputs of some of the layers that keep only their input. In half of the calls, offloads none.
inline Schedule some_parked(Random& random, Schedule step) {
  std::vector<bool> offloads(step.blocks.size());
  const bool any = pick(random, 0, 1) == 1;
  for (BlockId b = 0; b <= step.head(); b++)
    offloads[static_cast<size_t>(b)] = any && step.keeps(b) == Keep::input && pick(random, 0, 2) > 0;
  return with_input_offload(std::move(step), std::move(offloads));
}

inline Schedule random_spilled(Random& random, std::vector<BlockFacts> blocks, int32_t micros) {
  const auto placement = random_placement(random, blocks.size());
  const int32_t window = pick(random, 1, 4);
  switch (pick(random, 0, 5)) {
    case 0: return with_save(apply_pending_only(std::move(blocks), placement));
    case 1:
      return with_residency(evaluation_step(std::move(blocks), micros, static_cast<ComputeOrder>(pick(random, 0, 1))),
                        placement, window);
    case 2:
      return with_save(
          with_residency(some_parked(random, random_step(random, std::move(blocks), micros)), placement, window));
    default: return with_residency(some_parked(random, random_step(random, std::move(blocks), micros)), placement, window);
  }
}

// Makes a schedule whose blocks are computed on a device. Their state is in the host's memory or on its disk.
inline Schedule random_on_device(Random& random, std::vector<BlockFacts> blocks, int32_t micros) {
  const auto placement = pick(random, 0, 1) == 1 ? random_placement(random, blocks.size()) : std::vector<Placement>();
  const int32_t window = pick(random, 1, 4), ahead = pick(random, 0, 3);
  RankLayout layout;
  layout.device = true;
  switch (pick(random, 0, 5)) {
    case 0: return with_save(apply_pending_only(std::move(blocks), placement, layout));
    case 1:
      return with_residency(
          evaluation_step(std::move(blocks), micros, static_cast<ComputeOrder>(pick(random, 0, 1)), layout), placement,
          window, ahead);
    case 2:
      return with_save(with_residency(some_parked(random, random_step(random, std::move(blocks), micros, layout)),
                                      placement, window, ahead));
    default:
      return with_residency(some_parked(random, random_step(random, std::move(blocks), micros, layout)), placement, window,
                            ahead);
  }
}

inline Schedule random_schedule(Random& random) {
  auto blocks = random_blocks(random, 2, 7);
  const int32_t micros = pick(random, 1, 5);
  if (pick(random, 0, 3) == 0)
    for (size_t b = 1; b + 1 < blocks.size(); b++) blocks[b].packs_input = true;
  const int32_t where = pick(random, 0, 2);
  if (where == 0) return random_on_device(random, std::move(blocks), micros);
  if (where == 1) return random_spilled(random, std::move(blocks), micros);
  switch (pick(random, 0, 9)) {
    case 0: return evaluation_step(std::move(blocks), micros);
    case 1: return save_only(std::move(blocks));
    case 2: return training_step(std::move(blocks), micros);
    case 3:
    case 4: return some_parked(random, random_step(random, std::move(blocks), micros));
    case 5: return with_save(training_step(std::move(blocks), micros));
    default: return with_save(with_updates_aside(training_step(std::move(blocks), micros)));
  }
}

// Moves ops to random lanes, so that only their dependencies keep them in order.
inline void spread(Schedule& schedule, Random& random) {
  for (Op& op : schedule.ops) op.lane = static_cast<Lane>(pick(random, 0, kLanes - 1));
}

// Finds the op of this kind, block and micro-batch.
inline OpId find(const Schedule& schedule, OpKind kind, BlockId block = kNoBlock, MicroId micro = kNoMicro) {
  for (size_t op = 0; op < schedule.ops.size(); op++) {
    const Op& it = schedule.ops[op];
    if (it.kind == kind && it.block == block && it.micro == micro) return static_cast<OpId>(op);
  }
  return kNoOp;
}

}  // namespace megalith
