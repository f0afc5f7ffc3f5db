#include "schedule/passes/recompute_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "schedule/check/checker.h"
#include "schedule/random_schedules.h"

namespace megalith {
namespace {

std::vector<BlockFacts> uneven_blocks(Random& random, int32_t count) {
  std::vector<BlockFacts> blocks = make_blocks(count, false);
  for (BlockFacts& block : blocks) {
    block.saved_bytes = pick(random, 100, 9000);
    block.output_bytes = pick(random, 50, 2000);
    block.attention_saved_bytes = pick(random, 0, static_cast<int32_t>(block.saved_bytes));
    block.attention.flop = pick(random, 0, 400);
    block.output.flop = pick(random, 0, 300);
    block.forward.flop = block.attention.flop + block.output.flop + pick(random, 1, 400);
  }
  return blocks;
}

// Tries all choices. Each layer keeps all, its attention half, its input, or nothing (after one that is recomputed).
void try_all(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, int64_t bytes,
             std::vector<Keep>& keep, size_t block, double& best) {
  if (block + 1 == blocks.size()) {
    const KeepCost cost = keep_cost(blocks, micros, order, keep);
    if (cost.bytes <= bytes) best = std::min(best, cost.flop);
    return;
  }
  for (Keep k : {Keep::all, Keep::attention, Keep::input, Keep::none}) {
    if (k == Keep::none && keep[block - 1] != Keep::input && keep[block - 1] != Keep::none) continue;
    keep[block] = k;
    try_all(blocks, micros, order, bytes, keep, block + 1, best);
  }
  keep[block] = Keep::all;
}

TEST(RecomputeChoice, IsTheBestOfAllChoicesThatFit) {
  Random random(11);
  int fitting = 0, between = 0, halves = 0;
  for (int i = 0; i < 150; i++) {
    const auto blocks = uneven_blocks(random, pick(random, 3, 8));
    const int32_t micros = pick(random, 1, 3);
    const auto order = static_cast<ComputeOrder>(pick(random, 0, 1));
    const int64_t most = keep_cost(blocks, micros, order, std::vector<Keep>(blocks.size(), Keep::all)).bytes;
    const int64_t bytes = pick(random, 1, static_cast<int32_t>(most + 100));
    std::vector<Keep> keep(blocks.size(), Keep::all);
    double best = INFINITY;
    try_all(blocks, micros, order, bytes, keep, 1, best);
    const std::vector<Keep> chosen = choose_keep(blocks, micros, order, bytes);
    if (chosen.empty()) continue;  // memory is counted in units, so a tight fit may be missed
    fitting++;
    const KeepCost cost = keep_cost(blocks, micros, order, chosen);
    EXPECT_LE(cost.bytes, bytes);
    EXPECT_GE(cost.flop, best);
    // Rounding may cost this much: compare with the best choice with less memory, one unit of the table per layer.
    double coarse = INFINITY;
    try_all(blocks, micros, order, bytes - bytes * static_cast<int64_t>(blocks.size()) / 500, keep, 1, coarse);
    EXPECT_LE(cost.flop, coarse);
    between += cost.flop > 0;
    halves += std::count(chosen.begin(), chosen.end(), Keep::attention) > 0;
    const auto problems = check(training_step(blocks, micros, order, chosen));
    EXPECT_TRUE(problems.empty()) << problems.front().reason;
  }
  EXPECT_GT(fitting, 60);
  EXPECT_GT(between, 30);
  EXPECT_GT(halves, 10);
}

TEST(RecomputeChoice, WithRoomForAllNothingIsMadeAgain) {
  const auto blocks = make_blocks(12, true);
  EXPECT_EQ(choose_keep(blocks, 2, ComputeOrder::by_micro, 1 << 20), std::vector<Keep>(12, Keep::all));
}

TEST(RecomputeChoice, NothingIsMadeAgainThatNobodyNeeds) {
  BlockFacts block = make_blocks(3, false)[1];
  block.forward.exchanges[Axis::tensor] = {4, 700};
  block.attention.exchanges[Axis::tensor] = {1, 100};
  block.output.exchanges[Axis::tensor] = {1, 250};
  EXPECT_EQ(block.again(Keep::none, true).exchanges[Axis::tensor], (ExchangeFacts{4, 700}));
  EXPECT_EQ(block.again(Keep::input, false).exchanges[Axis::tensor], (ExchangeFacts{3, 450}));
  EXPECT_EQ(block.again(Keep::attention, false).exchanges[Axis::tensor], (ExchangeFacts{2, 350}));
  EXPECT_EQ(block.again(Keep::none, true).flop, block.forward.flop);
  EXPECT_EQ(block.again(Keep::input, false).flop, block.forward.flop - block.output.flop);
  EXPECT_EQ(block.again(Keep::attention, false).flop, block.forward.flop - block.output.flop - block.attention.flop);
}

TEST(RecomputeChoice, EveryKthLayerKeepsItsInput) {
  const auto keep = recompute_every(make_blocks(7, false), 2);
  EXPECT_EQ(keep, (std::vector<Keep>{Keep::all, Keep::input, Keep::none, Keep::input, Keep::none, Keep::input, Keep::all}));
}

// In deep models, groups of neighbours get the same choice. It stays near the optimum and takes no more memory.
TEST(RecomputeChoice, DeepModelsAreChosenForInBoundedTime) {
  constexpr int32_t kLayers = 5000;
  std::vector<BlockFacts> blocks = make_blocks(kLayers + 2, false);
  for (BlockFacts& block : blocks) {
    block.saved_bytes = 5000;
    block.output_bytes = 300;
    block.attention_saved_bytes = 2000;
    block.forward.flop = 100;
    block.attention.flop = 40;
    block.output.flop = 20;
  }
  const int64_t all = keep_cost(blocks, 1, ComputeOrder::by_micro, std::vector<Keep>(blocks.size(), Keep::all)).bytes;
  double before = std::numeric_limits<double>::infinity();
  for (int64_t part : {8, 4, 2, 1}) {
    const std::vector<Keep> keep = choose_keep(blocks, 1, ComputeOrder::by_micro, all / part);
    ASSERT_EQ(keep.size(), blocks.size()) << part;
    const KeepCost cost = keep_cost(blocks, 1, ComputeOrder::by_micro, keep);
    EXPECT_LE(cost.bytes, all / part);
    EXPECT_LT(cost.flop, before);
    before = cost.flop;
  }
}

}  // namespace
}  // namespace megalith
