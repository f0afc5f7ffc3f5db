// Computes the values that the oracle scripts compare with Hugging Face: logits, loss, every gradient and the losses of a
// few steps. The model comes from a folder, the batch from JSON. Results go to a safetensors file and to stdout as JSON.
//   probe FOLDER BATCH.json OUT.safetensors [steps]
#include <ATen/Parallel.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/writer.h"
#include "engine/engine.h"
#include "engine/state_pieces.h"
#include "families/facts.h"
#include "inference/load_model.h"
#include "memory/allocator.h"
#include "model/token_dropping.h"
#include "schedule/ops/all.h"
#include "schedule/passes/training_step.h"

using namespace megalith;

namespace {

// Returns a schedule that ends with the gradients, without the ops that follow.
Schedule gradients_only(Schedule schedule) {
  std::vector<Op> ops;
  std::vector<OpId> place;
  for (Op& op : schedule.ops) {
    place.push_back(static_cast<OpId>(ops.size()));
    if (op.kind == ops::gradient_norm || op.kind == ops::prepare_update || op.kind == ops::optimizer_step) continue;
    for (OpId& before : op.after) before = place[static_cast<size_t>(before)];  // never one that was left out
    ops.push_back(op);
  }
  schedule.ops = ops;
  return schedule;
}

}  // namespace

int main(int argc, char** argv) {
  install_allocator();
  at::set_num_threads(2);
  const std::string folder = argv[1];
  nlohmann::json job = parse_json(read_file(argv[2]));
  ModelShape shape = read_hf_config(folder);
  TrainSettings settings;
  settings.lr = job.value("lr", 1e-3);
  settings.beta2 = 0.999;
  settings.weight_decay = job.value("weight_decay", 0.01);
  settings.clip = job.value("clip", 1.0);
  Batch batch;
  batch.sequences = job["ids"].size();
  batch.length = job["ids"][0].size();
  for (auto& row : job["ids"])
    for (int64_t id : row) batch.ids.push_back(id);
  for (auto& row : job["targets"])
    for (int64_t id : row) batch.targets.push_back(id);
  if (job.contains("prefix")) batch.prefix = job["prefix"].get<std::vector<int64_t>>();
  batch.document_begin = job.value("document_begin", std::vector<int64_t>());
  const int32_t micros = job.value("micros", 1);
  if (job.contains("kept"))
    batch.dropping = {job["kept"].get<int64_t>(), job["dropping_layers"].get<std::vector<int64_t>>(),
                      job.value("always", std::vector<uint8_t>())};

  Engine engine(shape, settings, 1, true);
  load_parameters(engine.state(), folder);
  at::Tensor logits = engine.logits(batch.ids, batch.sequences, nullptr, false).contiguous();

  auto facts = block_facts(shape, {batch.sequences / micros, batch.length}, Precision::fp32);
  Schedule step = training_step(facts, micros);
  Schedule backward = gradients_only(step);
  StepInput input{&batch, 0, settings.lr, nullptr};
  StepOutcome outcome = engine.run(backward, input);

  std::vector<TensorSpec> tensors{{"logits", DType::f32, {logits.size(0), logits.size(1)}}};
  std::vector<TensorPiece> gradients;
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++)
    for (TensorPiece& part : engine.state().gradients(b)) {
      tensors.push_back({"grad." + part.name, DType::f32, part.shape});
      gradients.push_back(part);
    }
  {
    CheckpointWriter writer(argv[3], {{"out.safetensors", tensors}}, {});
    writer.write("out.safetensors", "logits", 0,
                 std::as_bytes(std::span(logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel()))));
    for (const TensorPiece& part : gradients)
      writer.write("out.safetensors", "grad." + part.name, 0, std::as_bytes(part.values));
    writer.commit(nullptr);
  }
  engine.clear_gradients();

  nlohmann::json rows = nlohmann::json::object();  // rows that each layer kept in step 0; the reference needs them
  Pass pass;
  pass.sequences = batch.sequences;
  pass.length = batch.length;
  pass.seed = 1;
  pass.dropping = batch.dropping;
  for (int64_t layer : batch.dropping.layers) rows[std::to_string(layer)] = kept_rows(pass, layer);
  nlohmann::json out{
      {"rows", rows}, {"loss", outcome.loss}, {"losses", nlohmann::json::array()}, {"norms", nlohmann::json::array()}};
  for (int i = 0; i < (argc > 4 ? std::atoi(argv[4]) : 0); i++) {
    StepOutcome o = engine.run(step, input);
    out["losses"].push_back(o.loss);
    out["norms"].push_back(o.gradient_norm);
  }
  std::printf("%s\n", print_json(out).c_str());
}
