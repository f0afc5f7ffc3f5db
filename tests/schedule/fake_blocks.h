// Blocks without tensors: plain arrays of hashes in place of numbers. Every result depends on all its inputs and on the
// order of contributions. So a missing, doubled or misplaced op changes the final state. This code does not use the
// checker's table of effects, so it tests the checker independently. An object has the blocks of one rank. fake_ranks.h
// runs the blocks of one rank, or of several ranks that exchange data.
#pragma once
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/ops/all.h"

namespace megalith {

class FakeBlocks {
 public:
  using Buffer = std::vector<uint64_t>;  // all zero if the value does not exist

  // `column` is the index of the rank among the ranks that hold the same blocks. Each has its own sequences and slice.
  explicit FakeBlocks(const Schedule& schedule, size_t width = 1, int32_t column = 0)
      : schedule_(schedule), width_(width), column_(width, 1 + static_cast<uint64_t>(column)) {
    blocks_.resize(schedule.blocks.size());
    for (Buffer* step : {&targets_, &loss_, &totals_, &scale_, &checkpoint_}) step->assign(width, 0);
    for (size_t b = 0; b < blocks_.size(); b++) {
      Block& block = blocks_[b];
      for (Buffer* buffer : {&block.parameters, &block.slice, &block.optimizer, &block.gradient, &block.table,
                             &block.products, &block.sum, &block.norm, &block.written, &block.on_disk, &block.stowed})
        buffer->assign(width, 0);
      block.micros.resize(static_cast<size_t>(schedule.all_micros()));
      for (Micro& micro : block.micros)
        for (Buffer* buffer : {&micro.activation, &micro.saved, &micro.attention, &micro.output_gradient, &micro.deferred,
                               &micro.aside, &micro.parked, &micro.encoded, &micro.wanted})
          buffer->assign(width, 0);
      if (schedule.holds(static_cast<BlockId>(b))) fill(static_cast<BlockId>(b));
    }
  }

  // Does the work of an op, for Lanes.
  void work(OpId op) { begin(op, {gives(op)})(); }

  // The data that an op gives to the ranks that it meets. Empty if the op only receives or meets no rank.
  Buffer gives(OpId id) const {
    const Op& op = schedule_.ops[id];
    const Block* block = op.block == kNoBlock ? nullptr : &blocks_[op.block];
    const Micro* micro = op.micro == kNoMicro ? nullptr : &block->micros[op.micro];
    switch (op.kind) {
      case ops::gather_parameters: return hash(100, {&block->slice});
      case ops::reduce_gradient: return hash(101, {&block->gradient, &block->table, &block->products});
      case ops::all_reduce_totals: return losses_and_norms();
      case ops::batch_loss: {
        Buffer result = hash(26, {});
        for (int32_t m = 0; m < schedule_.micros; m++)
          result = hash(26, {&result, &block->micros[schedule_.training ? schedule_.micros + m : m].encoded});
        return result;
      }
      case ops::send_activation: return micro->activation;
      case ops::send_output_gradient: return micro->output_gradient;
      case ops::sync_tied_table: return schedule_.holds(op.block) ? block->parameters : Buffer();
      case ops::sync_tied_gradient: return schedule_.holds(op.block) ? Buffer() : block->table;
      case ops::commit: {
        Buffer result = hash(90, {});
        for (const Block& b : blocks_) result = hash(91, {&result, &b.written});
        return result;
      }
      default: return {};
    }
  }

  // Reads all inputs of the op and returns a function that writes its results. Another op can run in between. If the op
  // meets other ranks, `met` has the data that they gave: the sender's, or that of all ranks in order, including this one.
  std::function<void()> begin(OpId id, const std::vector<Buffer>& met) {
    const Op& op = schedule_.ops[id];
    const BlockId head = static_cast<BlockId>(blocks_.size()) - 1;
    const BlockId tied = schedule_.blocks.back().tied_to;
    Writes w;
    Block* block = op.block == kNoBlock ? nullptr : &blocks_[op.block];
    Block* table = tied == kNoBlock ? nullptr : &blocks_[tied];
    Micro* micro = op.micro == kNoMicro ? nullptr : &block->micros[op.micro];
    Micro* input = micro != nullptr && op.block > 0 ? &blocks_[op.block - 1].micros[op.micro] : nullptr;
    const bool owns_table = block != nullptr && block == table;
    const bool held = block != nullptr && schedule_.holds(op.block);
    const bool away = held && schedule_.placed(op.block) == Placement::on_disk;
    const bool gradient_stays = held && schedule_.gradient_stays(op.block);
    Buffer* home = block == nullptr ? nullptr : &home_of(*block);
    const auto clear_gradient = [&] {
      w.clear(block->gradient);
      if (owns_table) w.clear(block->table);
      w.clear(block->products);
    };
    switch (op.kind) {
      case ops::count_targets:
        w.set(targets_, hash(1, {&targets_}));
        break;
      case ops::forward: {
        Buffer result = hash(10 + op.micro, {&block->parameters});
        result = hash(11, {&result, input != nullptr ? &input->activation : &column_});
        const bool packed = schedule_.blocks[op.block].packs_input && schedule_.keeps(op.block) == Keep::all;
        const bool keeps = schedule_.training && op.micro < schedule_.micros;
        if (input != nullptr && (!keeps || packed || schedule_.keeps(op.block) == Keep::none))
          w.clear(input->activation);
        if (keeps && schedule_.keeps(op.block) == Keep::all) w.set(micro->saved, hash(12, {&result}));
        if (keeps && schedule_.keeps(op.block) == Keep::attention) w.set(micro->attention, hash(15, {&result}));
        if (op.block < head) {
          w.set(micro->activation, std::move(result));
        } else if (schedule_.blocks[op.block].scores_batch) {
          w.set(micro->encoded, hash(16, {&result}));
        } else {
          if (table != nullptr) result = hash(13, {&result, &table->parameters});
          w.set(loss_, hash(14, {&loss_, &result, &targets_}));
        }
        break;
      }
      case ops::recompute: {
        Buffer result = hash(10 + op.micro, {&block->parameters});
        result = hash(11, {&result, input != nullptr ? &input->activation : &column_});
        if (schedule_.blocks[op.block].packs_input) w.clear(input->activation);
        // The recomputed part is right only if the kept part is right.
        const bool part = schedule_.keeps(op.block) == Keep::attention;
        if (!part || micro->attention == hash(15, {&result})) w.set(micro->saved, hash(12, {&result}));
        if (op.block + 1 < head && schedule_.keeps(op.block + 1) == Keep::none) w.set(micro->activation, std::move(result));
        break;
      }
      case ops::load_updated: {
        Buffer& values = away ? block->on_disk : *home;
        Buffer& pending = pending_of(op.block);
        Buffer updated = hash(70, {&values, &pending, &block->optimizer});
        w.set(block->optimizer, hash(71, {&block->optimizer, &pending}));
        if (away) w.set(block->on_disk, updated);
        w.set(*home, std::move(updated));
        if (&pending == &block->gradient) clear_gradient();
        else w.clear(pending);
        break;
      }
      case ops::load: w.set(*home, block->on_disk); break;
      case ops::evict:
        w.clear(schedule_.micros == 0 ? *home : block->parameters);
        break;
      case ops::zero_gradient: clear_gradient(); break;
      case ops::offload_gradient: {
        const Buffer gradient = whole_gradient(*block);
        w.set(block->stowed, hash(75, {&block->stowed, &gradient}));
        if (!schedule_.slices() && !schedule_.layout.device) clear_gradient();
        w.clear(block->sum);
        break;
      }
      case ops::upload:
        w.set(block->parameters, hash(105, {&block->slice}));
        if (away) w.clear(block->slice);
        break;
      case ops::download:
        w.set(block->sum, hash(106, {&block->gradient, &block->table, &block->products}));
        clear_gradient();
        break;
      case ops::offload_input:
        w.set(micro->parked, input->activation);
        w.clear(input->activation);
        break;
      case ops::reload_input:
        w.set(input->activation, micro->parked);
        w.clear(micro->parked);
        break;
      case ops::batch_loss: {
        Buffer result = hash_all(27, met.empty() ? std::vector<Buffer>{gives(id)} : met);
        w.set(loss_, hash(22, {&loss_, &result, &targets_}));
        for (int32_t m = 0; m < schedule_.micros; m++) {
          const Buffer number(width_, static_cast<uint64_t>(m));
          w.clear(block->micros[schedule_.training ? schedule_.micros + m : m].encoded);
          if (schedule_.training) w.set(block->micros[m].wanted, hash(28, {&result, &number, &targets_, &column_}));
        }
        break;
      }
      case ops::loss: {
        const bool of_batch = schedule_.blocks[op.block].scores_batch;
        Buffer result = hash(20, {&block->parameters, &input->activation, of_batch ? &micro->wanted : &targets_});
        if (table != nullptr) result = hash(21, {&result, &table->parameters});
        if (of_batch) w.clear(micro->wanted);
        else w.set(loss_, hash(22, {&loss_, &result}));
        w.set(block->gradient, hash(23, {&block->gradient, &result}));
        if (table != nullptr) w.set(table->table, hash(24, {&table->table, &result}));
        w.set(input->output_gradient, hash(25, {&result}));
        w.clear(input->activation);
        break;
      }
      case ops::backward: {
        Buffer result = hash(30, {&micro->saved, &micro->output_gradient});
        if (schedule_.blocks[op.block].backward_uses_parameters) result = hash(35, {&result, &block->parameters});
        const bool packed = schedule_.blocks[op.block].packs_input;
        if (input != nullptr && !packed) result = hash(31, {&result, &input->activation});
        w.set(block->gradient, hash(32, {&block->gradient, &result}));
        if (owns_table) w.set(micro->aside, hash(33, {&result}));
        if (schedule_.defers_weight_gradients && !owns_table && op.block > 0) w.set(micro->deferred, hash(36, {&result}));
        if (input != nullptr) w.set(input->output_gradient, hash(34, {&result}));
        if (input != nullptr && !packed) w.clear(input->activation);
        w.clear(micro->saved);
        w.clear(micro->attention);
        w.clear(micro->output_gradient);
        break;
      }
      case ops::weight_gradient:
        w.set(block->products, hash(37, {&block->products, &micro->deferred}));
        w.clear(micro->deferred);
        break;
      case ops::embedding_gradient: {
        Buffer result = hash(40, {&block->table});
        for (Micro& m : block->micros) {
          result = hash(41, {&result, &m.aside});
          w.clear(m.aside);
        }
        w.set(block->table, std::move(result));
        break;
      }
      case ops::gradient_norm: w.set(block->norm, whole_gradient(*block)); break;
      case ops::prepare_update: w.set(scale_, schedule_.layout.sizes().ranks() > 1 ? totals_ : losses_and_norms()); break;
      case ops::optimizer_step: {
        const Buffer gradient = whole_gradient(*block);
        Buffer updated = hash(70, {home, &gradient, &block->optimizer, &scale_});
        w.set(block->optimizer, hash(71, {&block->optimizer, &gradient, &scale_}));
        // The slice is part of the whole parameters. The rest of them is out of date from now on.
        if (schedule_.slices() && schedule_.parameters_stay(op.block))
          w.set(block->parameters, hash(72, {&block->parameters, &updated}));
        w.set(*home, std::move(updated));
        if (gradient_stays) clear_gradient();
        w.clear(block->sum);
        break;
      }
      case ops::gather_parameters:
        w.set(block->parameters, hash_all(100, met));
        if (away) w.clear(block->slice);
        break;
      case ops::reduce_gradient: {
        const Buffer sum = hash_all(101, met);
        w.set(block->sum, schedule_.slices() ? hash(102, {&sum, &column_}) : sum);
        if (schedule_.slices() && !gradient_stays) clear_gradient();
        break;
      }
      case ops::all_reduce_totals: w.set(totals_, hash_all(103, met)); break;
      case ops::send_activation: w.clear(micro->activation); break;
      case ops::receive_activation: w.set(micro->activation, met.front()); break;
      case ops::send_output_gradient: w.clear(micro->output_gradient); break;
      case ops::receive_output_gradient: w.set(micro->output_gradient, met.front()); break;
      case ops::sync_tied_table:
        if (!held) w.set(block->parameters, met.front());
        break;
      case ops::sync_tied_gradient:
        if (held) w.set(block->table, hash(104, {&block->table, &met.front()}));
        else w.clear(block->table);
        break;
      case ops::save:
        w.set(block->written, hash(80, {away ? &block->on_disk : home, &block->optimizer}));
        break;
      case ops::commit: {
        const Buffer all = hash_all(92, met);
        w.set(checkpoint_, hash(93, {&checkpoint_, &all}));
        for (Block& b : blocks_) w.clear(b.written);
        break;
      }
    }
    return [w = std::move(w)] { w.apply(); };
  }

  // The complete state, for comparison.
  std::vector<Buffer> state() const {
    std::vector<Buffer> all{targets_, loss_, scale_, checkpoint_, totals_};
    for (const Block& b : blocks_) {
      all.insert(all.end(), {b.parameters, b.slice, b.optimizer, b.gradient, b.table, b.products, b.sum, b.norm, b.written,
                             b.on_disk, b.stowed});
      for (const Micro& m : b.micros)
        all.insert(all.end(), {m.activation, m.saved, m.attention, m.output_gradient, m.deferred, m.aside, m.parked, m.encoded,
                               m.wanted});
    }
    return all;
  }

 private:
  struct Micro {
    Buffer activation, saved, attention, output_gradient, deferred, aside, parked;
    Buffer encoded, wanted;  // output of a head that scores the batch, and its gradient
  };
  struct Block {
    Buffer parameters, slice, optimizer, gradient, table, products, sum, norm, written;
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

  // Fills a block that this rank holds with the state that the step before left.
  void fill(BlockId id) {
    Block& block = blocks_[id];
    const auto value = [&](uint64_t tag) {
      const Buffer number(width_, static_cast<uint64_t>(id));
      return schedule_.slices() ? hash(tag, {&number, &column_}) : hash(tag, {&number});
    };
    const Placement placed = schedule_.placed(id);
    if (schedule_.slices() && schedule_.parameters_stay(id)) block.parameters = value(4000);  // other slices have changed
    (placed == Placement::on_disk ? block.on_disk : home_of(block)) = value(1000);
    block.optimizer = value(2000);
    if (placed != Placement::in_memory) pending_of(id) = value(3000);
  }

  // The buffer that updates change.
  Buffer& home_of(Block& block) const {
    return schedule_.slices() || schedule_.layout.device ? block.slice : block.parameters;
  }
  // The gradient that waits for its update, for a block whose optimizer state is on disk.
  Buffer& pending_of(BlockId id) {
    Block& block = blocks_[id];
    if (schedule_.placed(id) == Placement::on_disk) return block.stowed;
    return schedule_.gradient_stays(id) ? block.gradient : block.sum;
  }
  Buffer whole_gradient(const Block& block) const {
    return schedule_.layout.sizes().reduces() || schedule_.layout.device ? hash(50, {&block.sum})
                                                            : hash(50, {&block.gradient, &block.table, &block.products});
  }
  Buffer losses_and_norms() const {
    Buffer result = hash(60, {&loss_});
    for (const Block& b : blocks_) result = hash(61, {&result, &b.norm});
    return result;
  }

  Buffer hash_all(uint64_t tag, const std::vector<Buffer>& inputs) const {
    Buffer result(width_, tag);
    for (const Buffer& input : inputs) result = hash(tag, {&result, &input});
    return result;
  }

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
  const Buffer column_;
  Buffer targets_, loss_, totals_, scale_, checkpoint_;
  std::vector<Block> blocks_;
};

// Returns the state after the ops have run one by one, in the order of the list.
inline std::vector<FakeBlocks::Buffer> run_in_order(const Schedule& schedule, size_t width = 1) {
  FakeBlocks blocks(schedule, width);
  for (size_t op = 0; op < schedule.ops.size(); op++) blocks.work(static_cast<OpId>(op));
  return blocks.state();
}

}  // namespace megalith
