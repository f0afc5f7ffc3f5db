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
#include "config/names.h"
#include "engine/block_store.h"
#include "engine/simulated_device.h"
#include "engine/state_pieces.h"
#include "engine/threads.h"
#include "families/family.h"
#include "inference/load_model.h"
#include "launch/environment.h"
#include "memory/allocator.h"
#include "planner/plan_json.h"
#include "planner/process.h"
#include "planner/shape_forecast.h"
#include "planner/shape_plans.h"
#include "run/foresee.h"
#include "run/prepare_data.h"
#include "run/resume.h"
#include "run/run.h"
#include "run/run_directory.h"
#include "schedule/passes/input_offload.h"
#include "train/loop.h"
#include "train/rank_setup.h"

namespace megalith {
namespace {

void say(const std::string& line) { log::info("{}", line); }

std::optional<Found> find_checkpoint(const RunDirectory& directory) {
  log::to_file(directory.file("log.txt").string());
  remove_stale(directory.checkpoints());
  auto found = latest_valid(directory.checkpoints(), [](const std::string& message) { log::warn("{}", message); });
  if (!found && !list_checkpoints(directory.checkpoints()).empty())
    log::warn("no checkpoint in {} is valid: starting from step 0", directory.checkpoints().string());
  if (!found) std::filesystem::remove(directory.file("tokenizer.json"));  // left by a run that never saved
  return found;
}

// Opens the run directory, which rank 0 locks, and returns the checkpoint to resume from.
std::optional<Found> open_directory(const Config& config, RankSetup& ranks, std::optional<RunDirectory>& directory) {
  std::optional<Found> found;
  ranks.leader_first([&] {
    directory.emplace(config.run.dir, ranks.leads());
    if (ranks.leads()) found = find_checkpoint(*directory);
  });
  found = ranks.broadcast_checkpoint(found);
  ranks.find_remote_hosts(directory->path());
  if (RemoteHosts* remote = ranks.remote()) {
    say("hosts that cannot see run.dir send their parts of checkpoints to rank 0");
    remote->bring(directory->file("config.yaml"));
    if (found) remote->bring(found->dir);
  }
  return found;
}

// Makes all checks that need no text: settings, files, memory. Returns the memory of the process itself.
Bytes check_before_work(const Config& config, const Layout& layout, const ForeseenBy& by) {
  const Foreseen foreseen = foresee_training(config, layout, by);
  check_fits(foreseen.input);  // first: it refuses sizes that no list of tensors can have
  check_files(foreseen);
  return foreseen.input.process;
}

struct Prepared {
  Run run;
  std::unique_ptr<Dataset> data;
};

Prepared prepare(const Config& config, const std::optional<Found>& checkpoint, RankSetup& ranks,
                 const RunDirectory& directory, TokenizerSource& tokenizer) {
  std::optional<Prepared> prepared;
  ranks.leader_first(
      [&] {
        prepared.emplace(prepare_run(config, {.mesh = ranks.mesh(),
                                              .host_ranks = ranks.host_ranks(),
                                              .resume = checkpoint,
                                              .tokenizer = tokenizer,
                                              .say = say}));
        prepared->data = prepare_data(prepared->run, directory, tokenizer.tokenizer(), say);
      },
      [&](RemoteHosts& remote) { remote.bring(directory.file("tokenizer.json")); });
  auto& [run, data] = *prepared;
  if (config.token_dropping.on())
    data->drop_tokens(config.token_dropping.layers_of(run.shape.layers), config.token_dropping.keep_special);
  ranks.leader_first(  // analyses also create files
      [&] { data->follow(run.shapes, prepare_filters(run, directory, *data, checkpoint.has_value() || !ranks.leads())); },
      [&](RemoteHosts& remote) { remote.bring(directory.file("analysis")); });
  ranks.check_same_admissions(print_json(data->admissions()));
  if (const int64_t never = data->never_admitted(); never > 0)
    log::warn("{} of {} training samples stay above a limit of the curriculum until the end: the run never trains on them", never,
              data->samples());
  return std::move(*prepared);
}

LoopState restore(Engine& engine, const Dataset& data, const std::filesystem::path& checkpoint) {
  load_parameters(engine.state(), checkpoint);
  load_optimizer(engine.state(), checkpoint);
  const nlohmann::json saved = read_state(checkpoint);
  if (saved.contains("data")) data.check_same(saved["data"].get<std::string>());  // older checkpoints do not have it
  data.check_admissions(saved.value("admissions", nlohmann::json()));
  engine.restore({saved.at("updates").get<int64_t>(),
                  {saved.at("loss_scale").get<double>(), saved.at("loss_scale_good_steps").get<int64_t>()}});
  return {.step = saved.at("step").get<int64_t>(),
          .tokens = saved.at("tokens").get<int64_t>(),
          .skipped = saved.at("skipped").get<int64_t>(),
          .skipped_in_a_row = saved.at("skipped_in_a_row").get<int64_t>()};
}

// Fills the model with initial weights, with the weights of model.from, or with the state to resume from.
LoopState fill(Engine& engine, const Run& run, const Dataset& data) {
  if (run.resume) return restore(engine, data, run.weights);
  if (run.weights.empty()) engine.state().initialise(run.config.run.seed);
  else start_from(engine.state(), {run.weights, run.head == HeadUse::fresh, run.config.run.seed});
  return {};
}

// Writes the decisions, for people and for the next start. Call it when nothing can refuse the run any more.
void write_decisions(const Run& run, const PlanInput& input, const Plan& plan, const RunDirectory& directory) {
  write_file_atomically(directory.file("config.yaml"), resolved_yaml(run, plan));
  nlohmann::json json = to_json(plan, input);
  json["shapes"] = to_json(forecast_shapes(input, plan, run.shapes, run.steps));
  write_file_atomically(directory.file("plan.json"), print_json(json, 1));
}

// Warns if the run ends while sequences are still short or tokens are still dropped: that is rarely intended.
void tell_unfinished(const Run& run) {
  auto tell = [&](const std::string& key, const PacingSettings& pacing) {
    const int64_t last = std::max<int64_t>(0, run.steps - 1);
    const int64_t done = run.shapes.before(last, pacing.unit);  // progress of the pacing at the last step
    if (done < pacing.over)
      log::warn("the run ends before {} reaches {}: the last step starts after {} of {} {}, with the value {}", key,
                pacing.to, done, pacing.over, name_of(pacing.unit), Pacing(pacing).at(done));
  };
  const std::vector<CurriculumSettings>& curriculum = run.config.curriculum;
  for (size_t i = 0; i < curriculum.size(); i++) tell(fmt::format("curriculum[{}]", i), curriculum[i].pacing);
  if (run.config.token_dropping.on()) tell("token_dropping", run.config.token_dropping.pacing);
}

// Warns about a sliding window. Only sequences within it are computed exactly, so the settings refuse longer ones.
void tell_window(const ModelShape& shape) {
  if (shape.window_shortens())
    log::warn("the model's sliding_window is {0}, shorter than its context of {1}: attention with a sliding "
              "window is not supported, so data.sequence can be at most {0}",
              shape.window, shape.context);
}

// Describes the model, how it is trained, and the predicted time and memory of a step.
std::string first_line(const Run& run, const PlanInput& input, const Plan& plan, int64_t step) {
  const auto changes = run.shapes.changes(run.steps);
  auto by_work = [](const auto& a, const auto& b) { return a.second.work() < b.second.work(); };
  const StepShape smallest = std::ranges::min_element(changes, by_work)->second;
  const StepShape largest = std::ranges::max_element(changes, by_work)->second;
  const Layout& layout = run.mesh.layout();
  return fmt::format(
      "{} {}: {} parameters, {} tokens a step in {}{}, {}; predicted {} {}, {} of {}",
      step > 0 ? fmt::format("resuming at step {},", step) : "training", run.shape.family->name,
      show_count(parameter_count(run.shape)),
      smallest.tokens() < largest.tokens() ? fmt::format("{} to {}", smallest.tokens(), largest.tokens())
                                           : fmt::to_string(largest.tokens()),
      plan.micros == 1 ? "one micro-batch" : fmt::format("{} micro-batches", plan.micros),
      layout.ranks() > 1
          ? fmt::format(" on {}{}", show(layout), layout.zero > 0 ? fmt::format(", ZeRO {}", layout.zero) : "")
          : "",
      plan.threads == 1 ? "one thread" : fmt::format("{} threads", plan.threads),
      show_seconds(ShapePlans(input, plan).at(largest).predicted.seconds), changes.size() > 1 ? "for the largest" : "a step",
      show(plan.predicted_peak()), show(plan.budget));
}

}  // namespace

TrainResult train(const Config& config, const Joined& joined, launch::StatusPage& page) {
  World* world = joined.world;
  const Layout layout = check_run(config, world ? world->size() : 1, launch::environment().ranks_from());
  const int32_t host_ranks = world ? static_cast<int32_t>(world->neighbours().size()) : 1;
  const bool leads = !world || world->rank() == 0;
  // Make the checks before the directory is made, so that a mistake leaves nothing. If there are checkpoints, check
  // later: the checkpoint to resume from is found only in an open directory.
  const bool begun = !list_checkpoints(std::filesystem::path(config.run.dir) / "checkpoints").empty();
  Bytes process(0);
  if (leads && !begun) process = check_before_work(config, layout, {host_ranks, std::nullopt, joined.transport});
  RankSetup ranks(world, layout);
  std::optional<RunDirectory> opened;
  const std::optional<Found> checkpoint = open_directory(config, ranks, opened);
  if (leads && begun) process = check_before_work(config, layout, {host_ranks, checkpoint, joined.transport});
  const RunDirectory& directory = *opened;
  const Config settings = checkpoint ? resume_config(directory.path(), config, layout) : config;
  if (checkpoint) log_changes(directory.path(), settings);
  KeptTokenizer tokenizer(directory, say);
  const auto [run, data] = prepare(settings, checkpoint, ranks, directory, tokenizer);

  set_threads(run.threads);
  PlanInput input = plan_input(run);
  input.process = with_data(process);
  const Plan plan = make_plan(input, Measuring::allowed, ranks.peers());
  set_allocation_budget(Bytes(plan.budget.value - plan.process.value));
  for (const std::string& change : plan.adapted) say(change);

  const MemorySettings& memory = settings.memory;
  std::shared_ptr<Device> device;  // outlives the engine
  if (memory.device) {
    device = simulated_device(*memory.device, static_cast<double>(memory.device_bandwidth));
    say(fmt::format("blocks are computed on a simulated device: {}, {} a second each way", show(*memory.device),
                    show(Bytes(memory.device_bandwidth))));
  }
  Engine engine(run.shape, settings.train, settings.run.seed, /*training=*/true,
                {plan.strategy.placement, ranks.spill_folder(memory.spill), offloaded_input_bytes(plan.step), plan.micros,
                 plan.staging, device.get()},
                ranks.groups(), plan.strategy.layout.stages);
  if (const BlockStore* store = engine.store())
    say(fmt::format("{} of state in {} ({})", show(Bytes(store->bytes())), memory.spill, describe(store->way())));
  StatusObserver observer(page);
  engine.observe(&observer);
  const Observed observed(world, observer);
  const LoopState state = fill(engine, run, *data);
  if (ranks.remote() && checkpoint) ranks.remote()->forget(checkpoint->dir);
  std::string rate_jump;  // before config.yaml has the new settings
  if (ranks.leads() && checkpoint)
    if (const auto before = saved_config(directory.path()))
      rate_jump = describe_rate_jump(*before, settings, run.shape.layers, state.step);
  if (ranks.leads()) {
    write_decisions(run, input, plan, directory);
    prune_older(directory.checkpoints(), settings.checkpoint.keep, state.step);
  }
  settle_shared_state();
  if (ranks.leads()) {
    tell_unfinished(run);
    tell_window(run.shape);
    if (!rate_jump.empty()) log::warn("{}", rate_jump);
  }
  say(first_line(run, input, plan, state.step));
  TrainResult result =
      TrainingLoop({run, input, plan, directory, engine, *data, tokenizer.tokenizer(), page, ranks.groups(), ranks.remote()})
          .run(state);
  set_allocation_budget(Bytes(0));
  return result;
}

}  // namespace megalith
