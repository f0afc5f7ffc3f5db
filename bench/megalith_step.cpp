// Megalith's own steps for the benchmark, as `train` makes them: the plan's schedule on the engine. Speaks as
// peers/worker.py does.  megalith_step ARCH LAYERS HIDDEN HEADS FFN VOCAB BATCH SEQUENCE CONTEXT THREADS
#include <ATen/Parallel.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "base/philox.h"
#include "base/units.h"
#include "config/names.h"
#include "families/registry.h"
#include "engine/engine.h"
#include "engine/state_pieces.h"
#include "memory/allocator.h"
#include "planner/plan.h"

namespace megalith {
namespace {

int64_t status_bytes(const std::string& field) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return 0;
}

Batch make_batch(const ModelShape& shape, int64_t sequences, int64_t length) {
  Batch batch;
  batch.sequences = sequences;
  batch.length = length;
  const bool masked = shape.family->bidirectional;
  Philox random(1, RandomUse::masking, 0, 0);
  for (int64_t i = 0; i < sequences * length; i++)
    batch.ids.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(shape.vocab))));
  for (int64_t i = 0; i < sequences * length; i++) {
    const int64_t place = i % length % 20;
    const bool chosen = place == 3 || place == 9 || place == 16;
    if (masked) {
      batch.targets.push_back(chosen ? batch.ids[static_cast<size_t>(i)] : kNoTarget);
      if (chosen) batch.ids[static_cast<size_t>(i)] = 103;
    } else {
      batch.targets.push_back(batch.ids[static_cast<size_t>((i + 1) % (sequences * length))]);
    }
  }
  return batch;
}

int serve(char** argument) {
  const int64_t base = status_bytes("VmRSS");
  Config config;
  config.model.shape = default_shape(*find_family(argument[0]));
  auto number = [&](int i) { return std::stoll(argument[i]); };
  ModelShape& shape = config.model.shape;
  shape.layers = number(1);
  shape.hidden = number(2);
  shape.heads = number(3);
  shape.ffn = number(4);
  shape.vocab = number(5);
  shape.context = number(8);
  shape.tied = true;  // as the peers' models are
  fill_defaults(shape);
  config.train.batch = number(6);
  config.data.sequence = number(7);
  config.train.threads = number(9);
  if (shape.family->bidirectional) config.objective.kind = Objective::masked;
  config.run.dir = ".";
  at::set_num_threads(static_cast<int>(config.train.threads));
  const Plan plan = make_plan(plan_input(config, shape, Layout(), StepShapes(config, shape.layers)));
  Engine engine(shape, config.train, 1, true);
  engine.state().initialise(1);
  const Batch batch = make_batch(shape, config.train.batch, config.data.sequence);
  std::cout << R"({"ready": true, "micros": )" << plan.micros << R"(, "parameters": )" << parameter_count(shape) << "}"
            << std::endl;
  int64_t step = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::string seconds;
    double loss = 0;
    for (int64_t i = std::stoll(line); i > 0; i--) {
      const auto begin = std::chrono::steady_clock::now();
      loss = engine.run(plan.step, {&batch, step++, config.train.lr, nullptr}).loss;
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      seconds += fmt::format("{}{}", seconds.empty() ? "" : ", ", s);
    }
    std::cout << fmt::format(R"({{"seconds": [{}], "loss": {}}})", seconds, loss) << std::endl;
  }
  std::cout << fmt::format(R"({{"base_bytes": {}, "peak_bytes": {}}})", base, status_bytes("VmHWM")) << std::endl;
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int count, char** arguments) {
  if (count != 11) {
    std::cerr << "usage: megalith_step ARCH LAYERS HIDDEN HEADS FFN VOCAB BATCH SEQUENCE CONTEXT THREADS\n";
    return 2;
  }
  megalith::install_allocator();
  return megalith::serve(arguments + 1);
}
