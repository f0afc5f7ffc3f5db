#include "train/train.h"

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "config/check.h"
#include "config/unavailable.h"
#include "memory/allocator.h"
#include "report/html.h"
#include "train/load_model.h"
#include "train/loop.h"
#include "train/outlook.h"
#include "train/prepare_curriculum.h"
#include "train/prepare_data.h"
#include "train/run_directory.h"

namespace megalith {
namespace {

void say(const std::string& line) { log::info("{}", line); }

void restore(Engine& engine, Dataset& data, LoopState& state, const Found& checkpoint) {
  load_parameters(engine.model(), checkpoint.dir);
  load_optimizer(engine.model(), checkpoint.dir);
  nlohmann::json saved = read_state(checkpoint.dir);
  state.step = saved.at("step").get<int64_t>();
  state.tokens = saved.at("tokens").get<int64_t>();
  state.skipped = saved.at("skipped").get<int64_t>();
  state.skipped_in_a_row = saved.at("skipped_in_a_row").get<int64_t>();
  if (saved.contains("order")) data.restore_order(saved["order"]);
  engine.restore({saved.at("updates").get<int64_t>(),
                  {saved.at("loss_scale").get<double>(), saved.at("loss_scale_good_steps").get<int64_t>()}});
}

}  // namespace

TrainResult train(Config config) {
  check_for_training(config);
  refuse_unavailable(config);
  RunDirectory run(config.run.dir);
  log::to_file(run.file("log.txt").string());
  remove_stale(run.checkpoints());

  auto checkpoint = latest_valid(run.checkpoints(), [](const std::string& message) { log::warn("{}", message); });
  if (checkpoint)
    if (auto saved = saved_config(run.path())) config = continue_config(*saved, config);
  if (!checkpoint && !list_checkpoints(run.checkpoints()).empty())
    log::warn("no checkpoint in {} is valid: the run begins again from step 0", run.checkpoints().string());
  if (!checkpoint) std::filesystem::remove(run.file("tokenizer.json"));  // of a run that never saved

  const std::filesystem::path folder = checkpoint ? checkpoint->dir : folder_to_start_from(config, say);
  auto tokenizer = prepare_tokenizer(config, run, say);
  complete_shape(config, folder, tokenizer ? tokenizer->vocab_size() : 0);
  auto data = prepare_data(config, run, tokenizer.get(), say);
  const StepShapes shapes(config);
  if (config.token_dropping.on())
    data->drop_tokens(config.token_dropping.layers_of(config.model.shape.layers), config.token_dropping.keep_special);
  data->follow(shapes, prepare_filters(config, run, *data));

  const Plan plan = plan_run(config, Measuring::allowed);
  run.save_config(config);
  write_file_atomically(run.file("plan.json"), to_json(plan, config).dump(1));
  set_allocation_budget(Bytes(plan.budget.value - plan.process.value));
  for (const std::string& change : plan.adapted) say(change);

  Engine engine(config.model.shape, config.train, config.run.seed, /*training=*/true,
                {plan.strategy.placement, config.memory.spill});
  if (const BlockStore* store = engine.model().store())
    say(fmt::format("{} of state in {} ({})", show(Bytes(store->bytes())), config.memory.spill, describe(store->way())));
  LoopState state;
  if (checkpoint) restore(engine, *data, state, *checkpoint);
  else if (!folder.empty()) start_from(engine.model(), folder);
  else engine.model().initialise(config.run.seed);

  say(fmt::format("{} {}: {} parameters, {} tokens a step in {}, {} threads; predicted {} a step, {} of {}",
                  state.step > 0 ? fmt::format("resuming at step {},", state.step) : "training", name(config.model.shape.arch),
                  show_count(parameter_count(config.model.shape)), config.train.batch * config.data.sequence,
                  plan.micros == 1 ? "one micro-batch" : fmt::format("{} micro-batches", plan.micros),
                  plan.threads, show_seconds(plan.predicted.seconds), show(plan.predicted_peak()), show(plan.budget)));
  TrainResult result = TrainingLoop(config, plan, run, engine, *data, shapes, tokenizer.get()).run(state);
  set_allocation_budget(Bytes(0));
  return result;
}

}  // namespace megalith
