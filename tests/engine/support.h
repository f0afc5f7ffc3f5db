// Tiny models, batches and schedules, and the state of an engine as values that can be compared.
#pragma once
#include <ATen/Parallel.h>

#include <cmath>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "config/names.h"
#include "config/presets.h"
#include "engine/engine.h"
#include "engine/block_state.h"
#include "model/key_value_cache.h"
#include "engine/block_store.h"
#include "engine/state_pieces.h"
#include "families/facts.h"
#include "families/list.h"
#include "schedule/passes/training_step.h"
#include "schedule/ops/all.h"

namespace megalith {

// Show families and settings in the names of tests.
inline void PrintTo(const Family* family, std::ostream* out) { *out << family->name; }
inline void PrintTo(Router router, std::ostream* out) { *out << name_of(router); }
inline void PrintTo(Precision precision, std::ostream* out) { *out << name_of(precision); }
inline void PrintTo(OptimizerKind kind, std::ostream* out) { *out << name_of(kind); }

}  // namespace megalith

namespace megalith::testing_support {

inline ModelShape tiny(const Family* family, Dropout dropout = {}) {
  ModelShape shape = default_shape(*family);
  shape.layers = 2;
  shape.hidden = 32;
  shape.heads = 4;
  shape.kv_heads = family == &llama_family ? 2 : 0;
  shape.ffn = 48;
  shape.vocab = 61;
  shape.context = 32;
  shape.tied = true;
  shape.dropout = dropout;
  fill_defaults(shape);
  return shape;
}

// Four experts in every layer, two of them per token.
inline ModelShape tiny_experts(Router router = Router::softmax) {
  ModelShape shape = tiny(&llama_family);
  shape.experts.count = 4;
  shape.experts.router = router;
  shape.experts.ffn = 24;
  if (router == Router::expert_choice) shape.experts.across = 1;
  fill_defaults(shape);
  return shape;
}

// Random ids; targets are the next id, or some of the ids themselves for BERT.
inline Batch random_batch(const ModelShape& shape, int64_t sequences, int64_t length, uint64_t item = 0) {
  Batch batch;
  batch.sequences = sequences;
  batch.length = length;
  Philox random(1, RandomUse::test, item);
  for (int64_t i = 0; i < sequences * length; i++) {
    auto at = static_cast<uint64_t>(i);
    batch.ids.push_back(static_cast<int64_t>(random.below(at, static_cast<uint64_t>(shape.vocab))));
  }
  for (int64_t i = 0; i < sequences * length; i++) {
    bool last = (i + 1) % length == 0;
    int64_t target = shape.family == &bert_family ? (i % 4 == 1 ? batch.ids[i] : kNoTarget)
                                              : (last ? kNoTarget : batch.ids[i + 1]);
    batch.targets.push_back(target);
  }
  return batch;
}

inline TrainSettings settings_with(OptimizerKind optimizer = OptimizerKind::adamw) {
  TrainSettings settings;
  settings.optimizer = optimizer;
  return settings;
}

inline std::unique_ptr<Engine> make_engine(const ModelShape& shape, const TrainSettings& settings = {},
                                           uint64_t seed = 3) {
  at::set_num_threads(1);  // enough for tiny models; tests that need more threads set them afterwards
  auto engine = std::make_unique<Engine>(shape, settings, seed, true);
  engine->state().initialise(seed);
  return engine;
}

inline Schedule step_of(const ModelShape& shape, const Batch& batch, int32_t micros,
                        Precision precision = Precision::fp32) {
  MicroBatchShape micro{batch.sequences / micros, batch.length};
  return training_step(block_facts(shape, micro, precision), micros);
}

// A step that stops once the gradients are complete.
inline Schedule gradients_only(Schedule schedule) {
  std::vector<Op> ops;
  std::vector<OpId> moved;  // new id by old id; ops of gradients never come after removed ops
  for (Op& op : schedule.ops) {
    moved.push_back(static_cast<OpId>(ops.size()));
    if (op.kind == ops::gradient_norm || op.kind == ops::prepare_update || op.kind == ops::optimizer_step) continue;
    for (OpId& before : op.after) before = moved[static_cast<size_t>(before)];
    ops.push_back(op);
  }
  schedule.ops = std::move(ops);
  return schedule;
}

using Tensors = std::map<std::string, std::vector<float>>;

inline void copy_parts(Tensors& to, const std::vector<TensorPiece>& parts) {
  for (const TensorPiece& part : parts) to[part.name] = {part.values.begin(), part.values.end()};
}
inline Tensors parameters(Engine& engine) {
  Tensors out;
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++) copy_parts(out, engine.state().parameters(b));
  return out;
}
inline Tensors gradients(Engine& engine) {
  Tensors out;
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++) copy_parts(out, engine.state().gradients(b));
  return out;
}
inline Tensors optimizer_state(Engine& engine) {
  Tensors out;
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++)
    copy_parts(out, engine.state().optimizer_state(b));
  return out;
}
inline void clear_gradients(Engine& engine) {
  engine.clear_gradients();
}

inline double norm_of(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}
inline double norm_of(const Tensors& tensors) {
  double sum = 0;
  for (const auto& [name, x] : tensors) sum += norm_of(x) * norm_of(x);
  return std::sqrt(sum);
}

// The bound between layouts is on this: the largest |a - b| / max(|b|, 1e-6 |all tensors of b|) over all tensors.
inline double gradient_distance(const Tensors& a, const Tensors& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY, global = norm_of(b);
  for (const auto& [name, wanted] : b) {
    const std::vector<float>& got = a.at(name);
    double squares = 0;
    for (size_t i = 0; i < wanted.size(); i++) {
      double difference = static_cast<double>(got[i]) - wanted[i];
      squares += difference * difference;
    }
    worst = std::max(worst, std::sqrt(squares) / std::max(norm_of(wanted), 1e-6 * global));
  }
  return worst;
}

// Returns the losses of repeated steps on one batch. A model that learns memorises the batch.
inline std::vector<double> memorise(Engine& engine, const Batch& batch, const Schedule& schedule, int steps, double lr) {
  std::vector<double> losses;
  for (int i = 0; i < steps; i++) losses.push_back(engine.run(schedule, {&batch, i, lr, nullptr}).loss);
  return losses;
}

}  // namespace megalith::testing_support
