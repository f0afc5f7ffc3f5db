// The loss of a run's first step by a forward pass and nothing else: blocks one after the other, each given
// its initial weights, used and thrown away. No schedule, no engine, no spilling: what a spilled run's first
// loss is held to.
//   first_loss RUN.yaml SEQUENCES_AT_A_TIME [key=value ...]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <iostream>

#include "base/normals.h"
#include "config/parse.h"
#include "families/blocks.h"
#include "memory/allocator.h"
#include "memory/machine.h"
#include "run/prepare_data.h"

namespace megalith {
namespace {

// As initial weights are defined: every element a function of (seed, number of the parameter in the model,
// index).
at::Tensor initial_values(const Block& block, uint64_t seed, uint64_t& number) {
  at::Tensor values = at::empty({block.spec().flat_size}, at::kFloat);
  for (const ParameterSpec& p : block.spec().parameters) {
    std::span<float> out(values.data_ptr<float>() + p.offset, static_cast<size_t>(p.size()));
    std::fill(out.begin(), out.end(), static_cast<float>(p.initial));
    const Philox random(seed, RandomUse::initial_weights, number++);
    if (p.initial_std <= 0) continue;
    fill_normals(random, 0, out);
    for (float& value : out) value *= static_cast<float>(p.initial_std);
  }
  return values;
}

double first_loss(const Config& config, int64_t each) {
  const RunDirectory directory(config.run.dir);
  const auto silent = [](const std::string&) {};
  KeptTokenizer tokenizer(directory, silent);
  const Run run = prepare_run(config, {.tokenizer = tokenizer});
  auto data = prepare_data(run, directory, tokenizer.tokenizer(), silent);
  const Batch batch = data->train_batch(0, config.train.batch);
  std::vector<Pass> passes;
  for (int64_t begin = 0; begin < batch.sequences; begin += each) {
    const Batch part = batch.slice(begin, each);
    Pass& pass = passes.emplace_back();
    pass.sequences = part.sequences;
    pass.length = part.length;
    pass.ids_N = at::tensor(part.ids, at::kLong);
    pass.targets_N = at::tensor(part.targets, at::kLong);
  }
  std::vector<at::Tensor> x_NC(passes.size());
  auto blocks = make_blocks(config.model.shape);
  uint64_t number = 0;
  at::Tensor table;  // of the embedding, which a tied head uses again
  double loss = 0;
  int64_t targets = 0;
  for (size_t b = 0; b < blocks.size(); b++) {
    at::Tensor values = initial_values(*blocks[b], config.run.seed, number);
    blocks[b]->bind(values, {});
    if (b == 0) table = values;
    if (b + 1 < blocks.size()) {
      for (size_t m = 0; m < passes.size(); m++) x_NC[m] = blocks[b]->forward(x_NC[m], passes[m], nullptr);
      if (b > 0) blocks[b].reset();
      continue;
    }
    auto& head = static_cast<HeadBlock&>(*blocks[b]);
    if (config.model.shape.tied) head.tie(static_cast<EmbeddingBlock&>(*blocks.front()).table());
    for (size_t m = 0; m < passes.size(); m++) {
      const LossSums sums = head.loss(x_NC[m], passes[m]);
      loss += sums.loss;
      targets += sums.targets;
    }
  }
  return loss / static_cast<double>(targets);
}

}  // namespace
}  // namespace megalith

int main(int count, char** arguments) {
  using namespace megalith;
  if (count < 3) {
    std::cerr << "first_loss RUN.yaml SEQUENCES_AT_A_TIME [key=value ...]\n";
    return 2;
  }
  try {
    install_allocator();
    c10::InferenceMode no_graph;
    const std::vector<std::string> overrides(arguments + 3, arguments + count);
    const Config config = load_config(arguments[1], overrides);
    at::set_num_threads(static_cast<int>(config.train.threads > 0 ? config.train.threads : usable_cores()));
    std::cout << fmt::format("{{\"loss\": {}}}", first_loss(config, std::stoll(arguments[2]))) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "first_loss: " << error.what() << "\n";
    return 1;
  }
}
