#include "schedule/passes/pipeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "schedule/passes/step_writer.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

// A run of blocks on one stage.
struct ModelChunk {
  BlockId first = 0, last = 0;
  int32_t stage = 0;
  double forward = 0, backward = 0;  // cost of a micro-batch, in flop
  double weights = 0;                // cost of the weight gradients that backward defers, in flop
  bool defers = false;               // true if backward defers weight gradients
};

std::vector<ModelChunk> chunks_of(const Schedule& step) {
  std::vector<ModelChunk> pieces;
  for (BlockId block = 0; block <= step.head(); block++) {
    if (block == 0 || step.stage(block) != step.stage(block - 1)) pieces.push_back({block, block, step.stage(block)});
    ModelChunk& piece = pieces.back();
    piece.last = block;
    const BlockFacts& facts = step.blocks[block];
    // The head runs backward together with forward. Backward of a block includes its recomputation.
    piece.forward += facts.forward.flop + (block == step.head() ? facts.backward.flop : 0);
    if (block < step.head())
      piece.backward += facts.backward.flop + (step.keeps(block) == Keep::all ? 0 : facts.forward.flop);
    if (!step.defers(block)) continue;
    piece.defers = true;
    piece.weights += facts.weight_flop;
    piece.backward -= facts.weight_flop;
  }
  return pieces;
}

enum class Work : uint8_t { back, forward, weight_gradient };  // most preferred first

struct Task {
  size_t piece = 0;
  MicroId micro = 0;
  Work work = Work::forward;
  double start = 0;
};

// Finds the tasks of every stage and their times by simulating the step. A free stage prefers backward to forward. It
// computes deferred weight gradients only if it can do neither. It keeps no more micro-batches than the order allows.
class ListScheduler {
 public:
  ListScheduler(const std::vector<ModelChunk>& pieces, int32_t stages, int32_t micros, PipelineOrder order)
      : pieces_(pieces), stages_(stages), micros_(micros), order_(order) {
    forward_.assign(pieces.size(), 0);
    back_ = last_weight_gradient_ = forward_;
    const auto never = std::numeric_limits<double>::infinity();
    forward_done_.assign(pieces.size(), std::vector<double>(static_cast<size_t>(micros), never));
    back_done_ = forward_done_;
    free_at_.assign(static_cast<size_t>(stages), 0);
    tasks_.resize(static_cast<size_t>(stages));
  }

  std::vector<std::vector<Task>> run() {
    size_t left = 0;
    for (const ModelChunk& piece : pieces_) left += (piece.defers ? 3 : 2) * static_cast<size_t>(micros_);
    double now = 0;
    while (left > 0) {
      bool any = false;
      for (int32_t stage = 0; stage < stages_; stage++) {
        if (free_at_[stage] > now) continue;
        if (auto task = choose(stage, now)) {
          start(stage, *task, now);
          left--;
          any = true;
        }
      }
      if (!any) now = next_event(now);
    }
    return std::move(tasks_);
  }

 private:
  // The maximum number of micro-batches in flight (forward done, backward not) of a stage, summed over its pieces.
  int32_t limit(int32_t stage) const {
    const auto pieces = static_cast<int32_t>(pieces_.size()) / stages_;
    if (order_ == PipelineOrder::gpipe) return std::numeric_limits<int32_t>::max();
    if (pieces <= 1) return stages_ - stage;
    return 2 * (stages_ - stage - 1) + (pieces - 1) * stages_ + 1;
  }

  // The maximum number of micro-batches of a stage, including those that wait only for weight gradients. The first stage
  // of 1F1B has the same number, so no stage needs more memory than that stage.
  int32_t live_limit() const {
    return order_ == PipelineOrder::zero_bubble ? stages_ : std::numeric_limits<int32_t>::max();
  }

  bool can_forward(size_t p, double now) const {
    const MicroId m = forward_[p];
    return m < micros_ && (p == 0 || forward_done_[p - 1][m] <= now);
  }
  bool can_back(size_t p, double now) const {
    const MicroId m = back_[p];
    if (m >= micros_ || forward_done_[p][m] > now) return false;
    if (order_ == PipelineOrder::gpipe && forward_[p] < micros_) return false;
    return p + 1 == pieces_.size() || back_done_[p + 1][m] <= now;
  }

  std::optional<Task> choose(int32_t stage, double now) const {
    std::optional<Task> best;
    std::tuple<Work, int32_t, int64_t, MicroId> best_rank;
    int32_t in_flight = 0, live = 0;
    for (size_t p = 0; p < pieces_.size(); p++) {
      if (pieces_[p].stage != stage) continue;
      in_flight += forward_[p] - back_[p];
      live += forward_[p] - (pieces_[p].defers ? last_weight_gradient_ : back_)[p];
    }
    for (size_t p = 0; p < pieces_.size(); p++) {
      if (pieces_[p].stage != stage) continue;
      const auto offer = [&](Work work, MicroId micro) {
        // Micro-batches are taken in groups of `stages_`. Within a group, forward prefers the first piece and backward the
        // last one.
        const auto place = static_cast<int64_t>(p);
        const std::tuple rank(work, micro / stages_, work == Work::forward ? place : -place, micro);
        if (best && best_rank <= rank) return;
        best = Task{p, micro, work};
        best_rank = rank;
      };
      if (can_back(p, now)) offer(Work::back, back_[p]);
      // The limit applies only to the first piece of a stage, where micro-batches enter. A micro-batch that has entered may
      // always continue.
      const bool lets_in = p < static_cast<size_t>(stages_);
      const bool room = in_flight < limit(stage) && live < live_limit();
      if ((!lets_in || room) && can_forward(p, now)) offer(Work::forward, forward_[p]);
      if (pieces_[p].defers && last_weight_gradient_[p] < back_[p]) offer(Work::weight_gradient, last_weight_gradient_[p]);
    }
    return best;
  }

  void start(int32_t stage, const Task& task, double now) {
    const ModelChunk& piece = pieces_[task.piece];
    const double takes = task.work == Work::back      ? piece.backward
                         : task.work == Work::forward ? piece.forward
                                                      : piece.weights;
    const double ends = now + std::max(takes, 1.0);
    if (task.work == Work::weight_gradient) {
      last_weight_gradient_[task.piece]++;
    } else {
      const bool back = task.work == Work::back;
      (back ? back_done_ : forward_done_)[task.piece][task.micro] = ends;
      (back ? back_ : forward_)[task.piece]++;
    }
    free_at_[stage] = ends;
    tasks_[stage].push_back(task);
    tasks_[stage].back().start = now;
  }

  double next_event(double now) const {
    double next = std::numeric_limits<double>::infinity();
    for (double at : free_at_)
      if (at > now) next = std::min(next, at);
    MEGALITH_ASSERT(next < std::numeric_limits<double>::infinity(), "every stage waits for another");
    return next;
  }

  const std::vector<ModelChunk>& pieces_;
  const int32_t stages_, micros_;
  const PipelineOrder order_;
  std::vector<MicroId> forward_, back_, last_weight_gradient_;              // by piece: the next micro-batch
  std::vector<std::vector<double>> forward_done_, back_done_;  // by piece and micro-batch: time when it is done
  std::vector<double> free_at_;                                // by stage
  std::vector<std::vector<Task>> tasks_;                       // by stage
};

// Cuts the blocks into `count` runs such that the most expensive run is as cheap as possible. Returns the last block of
// each run.
std::vector<BlockId> ends_of_runs(const std::vector<double>& costs, int32_t count) {
  const size_t n = costs.size();
  std::vector<double> before(n + 1, 0);
  for (size_t i = 0; i < n; i++) before[i + 1] = before[i] + costs[i];
  // dearest[k][i] is the cost of the most expensive run if the first i blocks are cut into k runs.
  const double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> dearest(static_cast<size_t>(count) + 1, std::vector<double>(n + 1, never));
  std::vector<std::vector<size_t>> cut(static_cast<size_t>(count) + 1, std::vector<size_t>(n + 1, 0));
  dearest[0][0] = 0;
  for (size_t k = 1; k <= static_cast<size_t>(count); k++)
    for (size_t i = k; i <= n; i++)
      for (size_t j = k - 1; j < i; j++) {
        const double cost = std::max(dearest[k - 1][j], before[i] - before[j]);
        if (cost < dearest[k][i]) {
          dearest[k][i] = cost;
          cut[k][i] = j;
        }
      }
  std::vector<BlockId> ends(static_cast<size_t>(count));
  size_t end = n;
  for (size_t k = static_cast<size_t>(count); k > 0; k--) {
    ends[k - 1] = static_cast<BlockId>(end) - 1;
    end = cut[k][end];
  }
  return ends;
}

constexpr double kAtOnce = -1;  // before the times of all tasks

// Adds the first pass of a step whose loss is a function of the whole batch, and that loss. Micro-batches go through one
// piece after another, in groups of `stages` micro-batches. So every stage receives results in the order in which they are
// sent.
void first_pass(StepWriter& step, const std::vector<ModelChunk>& pieces, int32_t stages) {
  const Schedule& it = step.step();
  for (MicroId group = it.micros; group < it.all_micros(); group += stages)
    for (const ModelChunk& piece : pieces) {
      if (piece.stage != it.layout.stage()) continue;
      for (MicroId micro = group; micro < std::min(group + stages, it.all_micros()); micro++) {
        step.forward_through(piece.first, piece.last, micro);
        step.send_due(kAtOnce);
      }
    }
  step.batch_loss();
}

}  // namespace

std::vector<int32_t> balanced_stages(const std::vector<BlockFacts>& blocks, int32_t stages, int32_t pieces) {
  MEGALITH_ASSERT(stages >= 1 && pieces >= 1 && static_cast<size_t>(stages * pieces) <= blocks.size());
  std::vector<double> costs;
  for (const BlockFacts& block : blocks) costs.push_back(block.forward.flop + block.backward.flop);
  std::vector<int32_t> of;
  const std::vector<BlockId> ends = ends_of_runs(costs, stages * pieces);
  for (size_t run = 0; run < ends.size(); run++)
    of.resize(static_cast<size_t>(ends[run]) + 1, static_cast<int32_t>(run) % stages);
  return of;
}

Schedule pipeline_step(std::vector<BlockFacts> blocks, int32_t micros, PipelineOrder order, std::vector<Keep> keep,
                       RankLayout layout) {
  const int32_t here = layout.stage();
  Schedule empty = empty_step(std::move(blocks), micros, true, std::move(keep), std::move(layout));
  empty.defers_weight_gradients = order == PipelineOrder::zero_bubble;
  const std::vector<ModelChunk> pieces = chunks_of(empty);
  const int32_t stages = 1 + *std::max_element(empty.layout.stages.of.begin(), empty.layout.stages.of.end());
  StepWriter step(std::move(empty));
  const std::vector<std::vector<Task>> tasks = ListScheduler(pieces, stages, micros, order).run();
  std::map<std::tuple<BlockId, MicroId, Work>, double> starts;  // keyed by a task's first block, for backward its last
  for (const std::vector<Task>& of_stage : tasks)
    for (const Task& task : of_stage) {
      const ModelChunk& piece = pieces[task.piece];
      starts[{task.work == Work::forward ? piece.first : piece.last, task.micro, task.work}] = task.start;
    }
  step.hold_sends([&](OpKind kind, BlockId block, MicroId micro) {
    if (micro >= micros) return kAtOnce;
    return kind == ops::send_activation ? starts.at({block + 1, micro, Work::forward}) : starts.at({block, micro, Work::back});
  });
  first_pass(step, pieces, stages);
  const std::vector<Task>& mine = tasks[static_cast<size_t>(here)];
  for (size_t i = 0; i < mine.size(); i++) {
    const Task& task = mine[i];
    const ModelChunk& piece = pieces[task.piece];
    const bool last = task.micro + 1 == micros;
    step.send_due(task.start);
    if (task.work == Work::forward) {
      step.forward_through(piece.first, piece.last, task.micro);
    } else if (task.work == Work::weight_gradient) {
      step.weight_gradients_through(piece.first, piece.last, task.micro, last);
    } else {
      // If this backward sends no gradient to another stage and its weight gradients come next, compute them block by
      // block. Then the operands of all layers of the stage need not be kept at the same time.
      const bool now = piece.first == 0 && i + 1 < mine.size() && mine[i + 1].work == Work::weight_gradient &&
                       mine[i + 1].piece == task.piece && mine[i + 1].micro == task.micro;
      step.backward_through(piece.first, piece.last, task.micro, last,
                            now ? StepWriter::Weights::now : StepWriter::Weights::later);
      if (now) i++;
    }
  }
  return step.finish();
}

}  // namespace megalith
