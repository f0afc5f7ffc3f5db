#include "schedule/passes/recompute_choice.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace megalith {
namespace {

constexpr int64_t kUnits = 512;       // units of memory in the table
constexpr BlockId kLongestChain = 32;  // longer chains would take more memory than they save

// The maximum number of layers that get a separate choice. In deeper models, groups of neighbours get the same choice, so
// that the time to choose is bounded.
constexpr size_t kMostDecisions = 128;

// A chain of recomputed layers first..last, or one layer that keeps all or its attention half.
struct Chain {
  int64_t kept = 0;       // bytes kept from forward to backward
  int64_t transient = 0;  // additional bytes during backward
  double flop = 0;        // recomputed operations
};

class Costs {
 public:
  Costs(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order)
      : blocks_(blocks), micros_(micros), together_(order == ComputeOrder::by_block ? micros : 1) {}

  // `keep` is what the first layer keeps.
  Chain of(BlockId first, BlockId last, Keep keep) const {
    const BlockFacts& block = blocks_[first];
    switch (keep) {
      case Keep::all: return {together_ * ((block.packs_input ? 0 : input(first)) + block.saved_bytes), 0, 0};
      case Keep::attention:
        return {together_ * (input(first) + block.attention_saved_bytes), block.saved_bytes - block.attention_saved_bytes,
                static_cast<double>(micros_) * block.again(keep, false).flop};
      default: return recomputed(first, last);
    }
  }

 private:
  Chain recomputed(BlockId first, BlockId last) const {
    // Backward of the last block handles one micro-batch at a time.
    Chain chain{together_ * input(first), blocks_[last].saved_bytes, 0};
    for (BlockId b = first; b <= last; b++) {
      chain.flop += static_cast<double>(micros_) * blocks_[b].again(Keep::input, b < last).flop;
      if (b > first) chain.transient += together_ * input(b);
      if (b < last) chain.transient += together_ * blocks_[b].saved_bytes;
    }
    return chain;
  }

  int64_t input(BlockId block) const { return blocks_[block - 1].output_bytes; }
  const std::vector<BlockFacts>& blocks_;
  const int64_t micros_, together_;
};

// The feed-forward half is recomputed from the attention half, so the kept tensors must be unchanged, not packed.
bool can_keep_attention(const BlockFacts& block) { return !block.packs_input; }

struct Choice {
  double flop = std::numeric_limits<double>::infinity();
  BlockId last = kNoBlock;  // last layer of the chain that begins here
  Keep keep = Keep::all;    // what the first layer of the chain keeps
};

}  // namespace

std::vector<Keep> recompute_all(const std::vector<BlockFacts>& blocks) { return recompute_every(blocks, 1); }

std::vector<Keep> recompute_feed_forward(const std::vector<BlockFacts>& blocks) {
  std::vector<Keep> keep(blocks.size(), Keep::attention);
  keep.front() = keep.back() = Keep::all;
  return keep;
}

std::vector<Keep> recompute_every(const std::vector<BlockFacts>& blocks, int64_t k) {
  MEGALITH_ASSERT(k >= 1);
  std::vector<Keep> keep(blocks.size(), Keep::all);
  for (size_t b = 1; b + 1 < blocks.size(); b++)
    keep[b] = (static_cast<int64_t>(b) - 1) % k == 0 ? Keep::input : Keep::none;
  return keep;
}

KeepCost keep_cost(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order,
                   const std::vector<Keep>& keep) {
  const Costs costs(blocks, micros, order);
  const auto head = static_cast<BlockId>(blocks.size()) - 1;
  KeepCost cost;
  int64_t transient = 0;
  for (BlockId first = 1; first < head;) {
    BlockId last = first;
    while (last + 1 < head && keep[last + 1] == Keep::none) last++;
    const Chain chain = costs.of(first, last, keep[first]);
    cost.bytes += chain.kept;
    cost.flop += chain.flop;
    transient = std::max(transient, chain.transient);
    first = last + 1;
  }
  cost.bytes += transient;
  return cost;
}

namespace {

// Each block stands for `alike` layers, whose kept bytes add up.
std::vector<Keep> least_recomputation(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, int64_t bytes,
                                      int64_t alike) {
  const Costs costs(blocks, micros, order);
  const auto head = static_cast<BlockId>(blocks.size()) - 1;
  // Only one chain runs backward at a time, so only the largest `transient` counts. Try every possible limit for it.
  std::vector<int64_t> limits{0};
  for (BlockId first = 1; first < head; first++) {
    if (can_keep_attention(blocks[first])) limits.push_back(costs.of(first, first, Keep::attention).transient);
    for (BlockId last = first; last < std::min(head, first + kLongestChain); last++)
      limits.push_back(costs.of(first, last, Keep::input).transient);
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());

  std::vector<Keep> best;
  double best_flop = std::numeric_limits<double>::infinity();
  for (int64_t limit : limits) {
    if (limit > bytes) break;
    const int64_t room = (bytes - limit) / alike, unit = std::max<int64_t>(1, room / kUnits);
    const int64_t units = room / unit;
    // table[b][u] is the least recomputation for layers b and later, with u units of memory left.
    std::vector<std::vector<Choice>> table(static_cast<size_t>(head) + 1,
                                           std::vector<Choice>(static_cast<size_t>(units) + 1));
    for (Choice& done : table[static_cast<size_t>(head)]) done.flop = 0;
    for (BlockId first = head - 1; first >= 1; first--) {
      const auto consider = [&](BlockId last, Keep keep) {
        const Chain chain = costs.of(first, last, keep);
        if (chain.transient > limit) return false;
        const int64_t need = (chain.kept + unit - 1) / unit;
        for (int64_t u = need; u <= units; u++) {
          const double flop = chain.flop + table[static_cast<size_t>(last) + 1][static_cast<size_t>(u - need)].flop;
          Choice& choice = table[static_cast<size_t>(first)][static_cast<size_t>(u)];
          if (flop < choice.flop) choice = {flop, last, keep};
        }
        return true;
      };
      consider(first, Keep::all);
      if (can_keep_attention(blocks[first])) consider(first, Keep::attention);
      for (BlockId last = first; last < std::min(head, first + kLongestChain); last++)
        if (!consider(last, Keep::input)) break;
    }
    if (table[1][static_cast<size_t>(units)].flop >= best_flop) continue;
    best_flop = table[1][static_cast<size_t>(units)].flop;
    best.assign(blocks.size(), Keep::all);
    int64_t left = units;
    for (BlockId first = 1; first < head;) {
      const Choice& choice = table[static_cast<size_t>(first)][static_cast<size_t>(left)];
      for (BlockId b = first; b <= choice.last; b++) best[b] = b == first ? choice.keep : Keep::none;
      left -= (costs.of(first, choice.last, choice.keep).kept + unit - 1) / unit;
      first = choice.last + 1;
    }
  }
  return best;
}

}  // namespace

std::vector<Keep> choose_keep(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, int64_t bytes) {
  const size_t layers = blocks.size() - 2, alike = std::max<size_t>(1, (layers + kMostDecisions - 1) / kMostDecisions);
  if (alike == 1) return least_recomputation(blocks, micros, order, bytes, 1);
  std::vector<BlockFacts> some{blocks.front()};
  for (size_t b = 1; b <= layers; b += alike) some.push_back(blocks[b]);
  some.push_back(blocks.back());
  const std::vector<Keep> decided = least_recomputation(some, micros, order, bytes, static_cast<int64_t>(alike));
  if (decided.empty()) return {};
  std::vector<Keep> keep{Keep::all};  // each chain is repeated `alike` times
  for (size_t first = 1, end = 0; first + 1 < some.size(); first = end) {
    for (end = first + 1; end + 1 < some.size() && decided[end] == Keep::none;) end++;
    for (size_t time = 0; time < alike; time++)
      for (size_t b = first; b < end && keep.size() <= layers; b++) keep.push_back(decided[b]);
  }
  keep.push_back(Keep::all);
  return keep;
}

}  // namespace megalith
