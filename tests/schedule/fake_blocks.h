// Blocks without tensors: plain arrays of hashes in place of numbers. Every result depends on everything that
// went into it and on the order of contributions, so a missing, doubled or misplaced op changes the final
// state. Written apart from the checker's table of effects: what they agree on, they agree on independently.
#pragma once
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
#include <vector>

#include "schedule/random_schedules.h"

namespace megalith {

class FakeBlocks {
 public:
  using Buffer = std::vector<uint64_t>;  // all zero: not there

  explicit FakeBlocks(const Schedule& schedule, size_t width = 1) : schedule_(schedule), width_(width) {
    blocks_.resize(schedule.blocks.size());
    for (Buffer* step : {&targets_, &loss_, &scale_, &checkpoint_}) step->assign(width, 0);
    for (size_t b = 0; b < blocks_.size(); b++) {
      Block& block = blocks_[b];
      for (Buffer* buffer : {&block.gradient, &block.table, &block.norm, &block.written, &block.on_disk, &block.stowed})
        buffer->assign(width, 0);
      const Placement placed = schedule.placed(static_cast<BlockId>(b));
      block.parameters.assign(width, 1000 + b);
      if (placed != Placement::memory) block.stowed.assign(width, 3000 + b);
      if (placed == Placement::away) std::swap(block.parameters, block.on_disk);
      block.optimizer.assign(width, 2000 + b);
      block.micros.resize(static_cast<size_t>(schedule.micros));
      for (Micro& micro : block.micros) {
        for (Buffer* buffer : {&micro.activation, &micro.saved, &micro.attention, &micro.output_gradient, &micro.aside}) {
          buffer->assign(width, 0);
        }
      }
    }
  }

  // The work of an op for the lanes.
  void work(OpId op) { begin(op)(); }

  // Reads everything the op reads and returns what writes its results, so that another op can come in
  // between.
  std::function<void()> begin(OpId id) {
    const Op& op = schedule_.ops[id];
    const BlockId head = static_cast<BlockId>(blocks_.size()) - 1;
    const BlockId tied = schedule_.blocks.back().tied_to;
    Writes w;
    Block* block = op.block == kNoBlock ? nullptr : &blocks_[op.block];
    Block* table = tied == kNoBlock ? nullptr : &blocks_[tied];
    Micro* micro = op.micro == kNoMicro ? nullptr : &block->micros[op.micro];
    Micro* input = micro != nullptr && op.block > 0 ? &blocks_[op.block - 1].micros[op.micro] : nullptr;
    const bool owns_table = block != nullptr && block == table;
    switch (op.kind) {
      case OpKind::count:
        w.set(targets_, hash(1, {&targets_}));
        break;
      case OpKind::forward: {
        Buffer result = hash(10 + op.micro, {&block->parameters});
        if (input != nullptr) result = hash(11, {&result, &input->activation});
        const bool packed = schedule_.blocks[op.block].packs_input && schedule_.keeps(op.block) == Keep::all;
        if (input != nullptr && (!schedule_.training || packed || schedule_.keeps(op.block) == Keep::none)) w.clear(input->activation);
        if (schedule_.training && schedule_.keeps(op.block) == Keep::all) w.set(micro->saved, hash(12, {&result}));
        if (schedule_.training && schedule_.keeps(op.block) == Keep::attention) w.set(micro->attention, hash(15, {&result}));
        if (op.block < head) {
          w.set(micro->activation, std::move(result));
        } else {
          if (table != nullptr) result = hash(13, {&result, &table->parameters});
          w.set(loss_, hash(14, {&loss_, &result, &targets_}));
        }
        break;
      }
      case OpKind::recompute: {
        Buffer result = hash(10 + op.micro, {&block->parameters});
        if (input != nullptr) result = hash(11, {&result, &input->activation});
        if (schedule_.blocks[op.block].packs_input) w.clear(input->activation);
        // The rest that is made again is right only with the part that was kept.
        const bool part = schedule_.keeps(op.block) == Keep::attention;
        if (!part || micro->attention == hash(15, {&result})) w.set(micro->saved, hash(12, {&result}));
        if (op.block + 1 < head && schedule_.keeps(op.block + 1) == Keep::none) w.set(micro->activation, std::move(result));
        break;
      }
      case OpKind::renew: {
        const bool away = schedule_.placed(op.block) == Placement::away;
        Buffer& values = away ? block->on_disk : block->parameters;
        Buffer updated = hash(70, {&values, &block->stowed, &block->optimizer});
        w.set(block->optimizer, hash(71, {&block->optimizer, &block->stowed}));
        if (away) w.set(block->on_disk, updated);
        w.set(block->parameters, std::move(updated));
        w.clear(block->stowed);
        break;
      }
      case OpKind::fetch: w.set(block->parameters, block->on_disk); break;
      case OpKind::drop: w.clear(block->parameters); break;
      case OpKind::clear:
        w.clear(block->gradient);
        if (owns_table) w.clear(block->table);
        break;
      case OpKind::stow:
        w.set(block->stowed, hash(75, {&block->stowed, &block->gradient, &block->table}));
        w.clear(block->gradient);
        if (owns_table) w.clear(block->table);
        break;
      case OpKind::loss: {
        Buffer result = hash(20, {&block->parameters, &input->activation, &targets_});
        if (table != nullptr) result = hash(21, {&result, &table->parameters});
        w.set(loss_, hash(22, {&loss_, &result}));
        w.set(block->gradient, hash(23, {&block->gradient, &result}));
        if (table != nullptr) w.set(table->table, hash(24, {&table->table, &result}));
        w.set(input->output_gradient, hash(25, {&result}));
        w.clear(input->activation);
        break;
      }
      case OpKind::backward: {
        Buffer result = hash(30, {&micro->saved, &micro->output_gradient});
        if (schedule_.blocks[op.block].backward_uses_parameters) result = hash(35, {&result, &block->parameters});
        const bool packed = schedule_.blocks[op.block].packs_input;
        if (input != nullptr && !packed) result = hash(31, {&result, &input->activation});
        w.set(block->gradient, hash(32, {&block->gradient, &result}));
        if (owns_table) w.set(micro->aside, hash(33, {&result}));
        if (input != nullptr) w.set(input->output_gradient, hash(34, {&result}));
        if (input != nullptr && !packed) w.clear(input->activation);
        w.clear(micro->saved);
        w.clear(micro->attention);
        w.clear(micro->output_gradient);
        break;
      }
      case OpKind::fold: {
        Buffer result = hash(40, {&block->table});
        for (Micro& m : block->micros) {
          result = hash(41, {&result, &m.aside});
          w.clear(m.aside);
        }
        w.set(block->table, std::move(result));
        break;
      }
      case OpKind::norm:
        w.set(block->norm, hash(50, {&block->gradient, &block->table}));
        break;
      case OpKind::clip: {
        Buffer result = hash(60, {&loss_});
        for (Block& b : blocks_) result = hash(61, {&result, &b.norm});
        w.set(scale_, std::move(result));
        break;
      }
      case OpKind::update:
        w.set(block->parameters,
              hash(70, {&block->parameters, &block->gradient, &block->table, &block->optimizer, &scale_}));
        w.set(block->optimizer, hash(71, {&block->optimizer, &block->gradient, &block->table, &scale_}));
        w.clear(block->gradient);
        if (owns_table) w.clear(block->table);
        break;
      case OpKind::save:
        w.set(block->written,
              hash(80, {schedule_.placed(op.block) == Placement::away ? &block->on_disk : &block->parameters,
                        &block->optimizer}));
        break;
      case OpKind::commit: {
        Buffer result = hash(90, {&checkpoint_});
        for (Block& b : blocks_) {
          result = hash(91, {&result, &b.written});
          w.clear(b.written);
        }
        w.set(checkpoint_, std::move(result));
        break;
      }
    }
    return [w = std::move(w)] { w.apply(); };
  }

  // Everything there is, for comparison.
  std::vector<Buffer> state() const {
    std::vector<Buffer> all{targets_, loss_, scale_, checkpoint_};
    for (const Block& b : blocks_) {
      all.insert(all.end(), {b.parameters, b.optimizer, b.gradient, b.table, b.norm, b.written, b.on_disk, b.stowed});
      for (const Micro& m : b.micros)
        all.insert(all.end(), {m.activation, m.saved, m.attention, m.output_gradient, m.aside});
    }
    return all;
  }

 private:
  struct Micro {
    Buffer activation, saved, attention, output_gradient, aside;
  };
  struct Block {
    Buffer parameters, optimizer, gradient, table, norm, written;
    Buffer on_disk, stowed;  // parameters; gradient
    std::vector<Micro> micros;
  };
  struct Writes {
    std::vector<std::pair<Buffer*, Buffer>> list;
    void set(Buffer& target, Buffer value) { list.emplace_back(&target, std::move(value)); }
    void clear(Buffer& target) { list.emplace_back(&target, Buffer(target.size(), 0)); }
    void apply() const {
      for (const auto& [target, value] : list) std::copy(value.begin(), value.end(), target->begin());
    }
  };

  Buffer hash(uint64_t tag, std::initializer_list<const Buffer*> inputs) const {
    Buffer result(width_, tag);
    for (const Buffer* input : inputs) {
      for (size_t i = 0; i < width_; i++) {
        uint64_t z = (result[i] ^ (*input)[i] * 0x9E3779B97F4A7C15ull) + 0xD1B54A32D192ED03ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        result[i] = z ^ (z >> 31);
      }
    }
    return result;
  }

  const Schedule& schedule_;
  size_t width_;
  Buffer targets_, loss_, scale_, checkpoint_;
  std::vector<Block> blocks_;
};

// The state after the ops one by one, as they are listed.
inline std::vector<FakeBlocks::Buffer> run_in_order(const Schedule& schedule, size_t width = 1) {
  FakeBlocks blocks(schedule, width);
  for (size_t op = 0; op < schedule.ops.size(); op++) blocks.work(static_cast<OpId>(op));
  return blocks.state();
}

// Runs with lanes of random speed: ops of different lanes overlap wherever the schedule lets them. False when
// ops are left that can never start.
inline bool run_interleaved(const Schedule& schedule, FakeBlocks& blocks, Random& random) {
  struct LaneState {
    std::vector<OpId> queue;
    size_t next = 0;
    std::function<void()> running;
    int32_t speed = 1;
  };
  std::array<LaneState, kLanes> lanes;
  for (LaneState& lane : lanes) lane.speed = std::array{1, 30, 1000}[pick(random, 0, 2)];
  for (size_t op = 0; op < schedule.ops.size(); op++) {
    lanes[static_cast<size_t>(schedule.ops[op].lane)].queue.push_back(static_cast<OpId>(op));
  }
  std::vector<bool> done(schedule.ops.size(), false);
  size_t left = schedule.ops.size();
  while (left > 0) {
    std::array<int32_t, kLanes> weights{};
    for (size_t l = 0; l < kLanes; l++) {
      LaneState& lane = lanes[l];
      bool able = lane.next < lane.queue.size();
      if (able && !lane.running) {
        for (OpId after : schedule.ops[lane.queue[lane.next]].after) able = able && done[after];
      }
      weights[l] = able ? lane.speed : 0;
    }
    if (std::accumulate(weights.begin(), weights.end(), 0) == 0) return false;
    LaneState& lane = lanes[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random)];
    const OpId op = lane.queue[lane.next];
    if (!lane.running) {
      lane.running = blocks.begin(op);
    } else {
      lane.running();
      lane.running = nullptr;
      done[op] = true;
      lane.next++;
      left--;
    }
  }
  return true;
}

}  // namespace megalith
