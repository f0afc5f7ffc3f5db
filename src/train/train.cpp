#include "train/train.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/filters.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "config/check.h"
#include "config/names.h"
#include "config/resolve_layout.h"
#include "engine/block_store.h"
#include "engine/process_groups.h"
#include "engine/simulated_device.h"
#include "engine/state_pieces.h"
#include "families/family.h"
#include "inference/load_model.h"
#include "memory/allocator.h"
#include "memory/spill_folder.h"
#include "planner/plan_json.h"
#include "planner/shape_forecast.h"
#include "planner/shape_plans.h"
#include "report/html.h"
#include "run/loss_record.h"
#include "run/outlook.h"
#include "run/prepare_data.h"
#include "run/run_directory.h"
#include "schedule/passes/input_offload.h"
#include "train/agreement.h"
#include "train/far_hosts.h"
#include "train/loop.h"

namespace megalith {
namespace {

void say(const std::string& line) { log::info("{}", line); }

void restore(Engine& engine, Dataset& data, LoopState& state, const Found& checkpoint) {
  load_parameters(engine.state(), checkpoint.dir);
  load_optimizer(engine.state(), checkpoint.dir);
  nlohmann::json saved = read_state(checkpoint.dir);
  state.step = saved.at("step").get<int64_t>();
  state.tokens = saved.at("tokens").get<int64_t>();
  state.skipped = saved.at("skipped").get<int64_t>();
  state.skipped_in_a_row = saved.at("skipped_in_a_row").get<int64_t>();
  data.check_admissions(saved.value("admissions", nlohmann::json()));
  engine.restore({saved.at("updates").get<int64_t>(),
                  {saved.at("loss_scale").get<double>(), saved.at("loss_scale_good_steps").get<int64_t>()}});
}

std::optional<Found> find_checkpoint(const RunDirectory& run) {
  log::to_file(run.file("log.txt").string());
  remove_stale(run.checkpoints());
  auto found = latest_valid(run.checkpoints(), [](const std::string& message) { log::warn("{}", message); });
  if (!found && !list_checkpoints(run.checkpoints()).empty())
    log::warn("no checkpoint in {} is valid: the run begins again from step 0", run.checkpoints().string());
  if (!found) std::filesystem::remove(run.file("tokenizer.json"));  // of a run that never saved
  return found;
}

// A run that ends on short sequences, or still drops tokens, is rarely what was meant.
void tell_unfinished(const Config& config, const StepShapes& shapes, int64_t steps) {
  auto tell = [&](const std::string& key, const PacingSettings& pacing) {
    const int64_t done = shapes.before(std::max<int64_t>(0, steps - 1), pacing.unit);  // what the last step goes by
    if (done < pacing.over)
      log::warn("the run ends before {} has reached {}: its last step begins after {} of {} {}, with {}", key, pacing.to, done,
                pacing.over, name_of(pacing.unit), Pacing(pacing).at(done));
  };
  for (size_t i = 0; i < config.curriculum.size(); i++) tell(fmt::format("curriculum[{}]", i), config.curriculum[i].pacing);
  if (config.token_dropping.on()) tell("token_dropping", config.token_dropping.pacing);
}

}  // namespace

TrainResult train(Config config, World* world, launch::StatusPage& page) {
  check_for_training(config);
  if (!config.memory.spill.empty()) check_spill_folder(config.memory.spill);
  const Layout layout = resolve_layout(config, world ? world->size() : 1);
  config.parallel.data = layout.data;
  std::optional<ProcessGroups> joined;
  if (world) {
    share_with_neighbours(*world);
    joined.emplace(*world, layout);
  }
  ProcessGroups* const groups = joined ? &*joined : nullptr;
  const bool leads = !groups || groups->first();
  // What leaves files behind is the leader's to do first; the others find them.
  std::optional<FarHosts> far;
  const auto leader_first = [&](const auto& work, const std::function<void()>& brought = [] {}) {
    if (leads) work();
    if (groups) world->barrier();
    const bool second = far && far->far() && far->leads_host();
    if (far) brought();
    if (second) work();
    if (far) world->barrier();
    if (!leads && !second) work();
  };

  std::optional<RunDirectory> held;
  std::optional<Found> checkpoint;
  leader_first([&] {
    held.emplace(config.run.dir, leads);
    if (leads) checkpoint = find_checkpoint(*held);
  });
  const RunDirectory& run = *held;
  if (groups) share(*world, checkpoint);
  if (groups && world->hosts() > 1) far.emplace(*world, run.path());
  if (far && !far->any()) far.reset();
  if (far) {
    say("hosts that do not see run.dir send their parts of checkpoints to rank 0");
    far->bring(run.file("config.yaml"));
    if (checkpoint) far->bring(checkpoint->dir);
  }
  if (checkpoint)
    if (auto saved = saved_config(run.path())) config = go_on_with(*saved, config);

  const std::filesystem::path folder = checkpoint ? checkpoint->dir : folder_to_start_from(config, say);
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Dataset> data;
  leader_first([&] {
    if (leads) check_curriculum(config);  // other hosts need no checkpoint whose losses come to them
    tokenizer = prepare_tokenizer(config, run, say);
    complete_shape(config, folder, tokenizer ? tokenizer->vocab_size() : 0);
    check_layout(config, layout);
    data = prepare_data(config, run, tokenizer.get(), say);
  }, [&] { far->bring(run.file("tokenizer.json")); });
  const StepShapes shapes(config);
  if (config.token_dropping.on())
    data->drop_tokens(config.token_dropping.layers_of(config.model.shape.layers), config.token_dropping.keep_special);
  leader_first([&] {  // analyses leave files, too
    data->follow(shapes, prepare_filters(config, run, *data, checkpoint.has_value() || !leads));
  }, [&] { far->bring(run.file("analysis")); });
  if (groups) check_same_admissions(*world, print_json(data->admissions()));
  if (const int64_t never = data->never_admitted(); never > 0)
    log::warn("{} of {} training samples are above a limit of the curriculum to its end, and are never trained on", never,
              data->samples());

  const Plan plan = plan_run(config, Measuring::allowed, seat_of(groups), checkpoint ? Begun::yes : Begun::no);
  set_allocation_budget(Bytes(plan.budget.value - plan.process.value));
  for (const std::string& change : plan.adapted) say(change);

  std::shared_ptr<Device> device;  // outlives the engine
  if (config.memory.device) {
    device = simulated_device(*config.memory.device, static_cast<double>(config.memory.device_bandwidth));
    say(fmt::format("blocks are computed on a simulated device: {}, {} a second each way", show(*config.memory.device),
                    show(Bytes(config.memory.device_bandwidth))));
  }
  Engine engine(config.model.shape, config.train, config.run.seed, /*training=*/true,
                {plan.strategy.placement, spill_folder(config, groups), offloaded_input_bytes(plan.step), plan.micros, plan.staging,
                 device.get()},
                groups, plan.strategy.layout.stages);
  if (const BlockStore* store = engine.store())
    say(fmt::format("{} of state in {} ({})", show(Bytes(store->bytes())), config.memory.spill, describe(store->way())));
  StatusObserver observer(page);
  engine.observe(&observer);
  const Observed observed(world, observer);
  LoopState state;
  if (checkpoint) restore(engine, *data, state, *checkpoint);
  else if (!folder.empty()) start_from(engine.state(), folder);
  else engine.state().initialise(config.run.seed);
  if (far && checkpoint) far->forget(checkpoint->dir);
  if (leads) {  // nothing refuses the run any more
    run.save_config(config);
    nlohmann::json json = to_json(plan, config);
    json["shapes"] = to_json(forecast_shapes(config, plan));
    write_file_atomically(run.file("plan.json"), print_json(json, 1));
  }
  settle_shared_state();

  const int64_t steps = shapes.steps_for(config.train.steps, config.train.schedule_by);
  if (leads) tell_unfinished(config, shapes, steps);
  const auto changes = shapes.changes(steps);
  auto by_work = [](const auto& a, const auto& b) { return a.second.work() < b.second.work(); };
  const StepShape smallest = std::ranges::min_element(changes, by_work)->second;
  const StepShape largest = std::ranges::max_element(changes, by_work)->second;
  say(fmt::format("{} {}: {} parameters, {} tokens a step in {}{}, {}; predicted {} {}, {} of {}",
                  state.step > 0 ? fmt::format("resuming at step {},", state.step) : "training",
                  config.model.shape.family->name, show_count(parameter_count(config.model.shape)),
                  smallest.tokens() < largest.tokens() ? fmt::format("{} to {}", smallest.tokens(), largest.tokens())
                                                       : fmt::to_string(largest.tokens()),
                  plan.micros == 1 ? "one micro-batch" : fmt::format("{} micro-batches", plan.micros),
                  groups ? fmt::format(" on {}{}", show(layout),
                                     config.parallel.zero > 0 ? fmt::format(", ZeRO {}", config.parallel.zero) : "")
                       : "",
                  plan.threads == 1 ? "one thread" : fmt::format("{} threads", plan.threads),
                  show_seconds(ShapePlans(config, plan).at(largest).predicted.seconds),
                  changes.size() > 1 ? "for the largest" : "a step", show(plan.predicted_peak()), show(plan.budget)));
  TrainResult result = TrainingLoop(config, plan, run, engine, *data, shapes, tokenizer.get(), page, groups,
                                    far ? &*far : nullptr)
                           .run(state);
  set_allocation_budget(Bytes(0));
  return result;
}

}  // namespace megalith
