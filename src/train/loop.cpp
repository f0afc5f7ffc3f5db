#include "train/loop.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/failure.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/stopwatch.h"
#include "checkpoint/store.h"
#include "config/objective_table.h"
#include "engine/process_groups.h"
#include "engine/state_pieces.h"
#include "families/family.h"
#include "inference/generate.h"
#include "launch/environment.h"
#include "memory/allocator.h"
#include "memory/machine.h"
#include "optim/rate.h"
#include "report/html.h"
#include "schedule/ops/all.h"
#include "schedule/show/draw.h"
#include "schedule/show/step_json.h"
#include "text/token_bytes.h"

namespace megalith {
namespace {

// Returns the seconds that a save added to a step: the time that updates waited for it, and its time after all other work.
double save_delay(const Schedule& schedule, const std::vector<Span>& spans) {
  double delay = 0, work_ends = 0;
  for (const Stall& stall : stalls(schedule, spans))
    if (stall.waited_for == ops::save) delay += stall.seconds;
  for (size_t i = 0; i < spans.size(); i++)
    if (schedule.ops[i].lane != Lane::write) work_ends = std::max(work_ends, spans[i].end);
  return delay + step_seconds(spans) - work_ends;
}

std::string show(const Validation& valid) {
  std::string text = fmt::format("validation loss {:.4f}", valid.loss);
  if (valid.perplexity > 0) text += fmt::format(", perplexity {:.2f}", valid.perplexity);
  if (valid.bits_per_byte > 0) text += fmt::format(", {:.3f} bits per byte", valid.bits_per_byte);
  return text;
}

std::string diverged(int64_t steps, const TrainSettings& train) {
  return fmt::format("{} had a loss or gradient that is not finite (train.max_bad_steps): lower train.lr "
                     "(now {}), raise train.warmup (now {}) or {}",
                     steps == 1 ? "1 step" : fmt::format("{} steps in a row", steps), train.lr, train.warmup,
                     train.clip > 0 ? fmt::format("lower train.clip (now {})", train.clip) : "set train.clip: 1");
}

}  // namespace

TrainingLoop::TrainingLoop(const LoopParts& p)
    : run_(p.run), config_(p.run.config), input_(p.input), plan_(p.plan), directory_(p.directory), engine_(p.engine),
      data_(p.data), tokenizer_(p.tokenizer), page_(p.page), groups_(p.groups), leads_(!p.groups || p.groups->first()),
      sees_run_dir_(!p.remote || !p.remote->is_remote()), plans_(input_, plan_), experts_(p.run.steps),
      saver_(p.directory.checkpoints(), p.engine.state(), p.tokenizer, p.run.config.data.sequence, p.run.config.checkpoint.keep, p.groups, p.remote) {}

TrainResult TrainingLoop::run(LoopState state) {
  if (state.step > 0) {
    last_checkpoint_ = (directory_.checkpoints() / checkpoint_name(state.step)).string();
    page_.checkpoint(state.step);
  }
  if (state.step >= run_.steps) {
    log::info("all {} steps are already done; raise train.steps to train longer", run_.steps);
    return {ExitCode::done, summary_before(state)};
  }
  reset_memory_peak();
  const Stopwatch watch;
  // Under a supervisor, the supervisor prints this message, once for all ranks.
  const bool supervised = launch::environment().role == launch::Role::supervised;
  const StopSignals signals(leads_ && !supervised ? "\nstopping after this step; saving a checkpoint. Press Ctrl-C again to stop now.\n" : "",
                            supervised ? AfterStop::ignore : AfterStop::restore);
  TrainResult result;
  try {
    begin(state);
    steps(state, signals);
    if (groups_) compare_ranks();
  } catch (const Fault& fault) {
    const bool resumable = !last_checkpoint_.empty();
    result.code = resumable ? ExitCode::fault_resumable : ExitCode::fault;
    if (progress_) progress_->clear();
    // With several ranks, each one says what went wrong when it ends. The supervisor says whether there is a checkpoint.
    if (groups_) result.failure = fmt::format("stopped after step {}: {}", state.step, fault.what());
    else
      log::error("stopped after step {}: {}; {}", state.step, fault.what(),
                 resumable ? "run the same command again to resume from " + last_checkpoint_ : "there is no checkpoint to resume from");
    result.summary = leave_failure(state, fault.what(), watch.seconds());
    return result;
  } catch (...) {
    leave_failure(state, failure_of(std::current_exception()).text, watch.seconds());
    throw;
  }
  progress_.reset();
  if (interrupted_) result.code = ExitCode::interrupted;
  result.summary = summary(state, interrupted_ ? "interrupted" : "finished", watch.seconds());
  if (leads_) write_summary(result.summary);
  return result;
}

void TrainingLoop::begin(const LoopState& state) {
  if (leads_) {
    // These files describe the previous process of this run, so they would be wrong if this process is killed.
    for (const char* name : {"summary.json", "trace.json"}) std::filesystem::remove(directory_.file(name));
  }
  if (groups_) groups_->world().barrier();  // wait before another rank can fail and write its summary
  if (!leads_) return;
  log_ = std::make_unique<MetricsLog>(directory_.file("metrics.jsonl"), state.step);
  board_ = std::make_unique<TensorBoardLog>(directory_.file("tensorboard"), state.step);
  progress_ = std::make_unique<Progress>(
      Progress::Options{.steps = run_.steps, .first_step = state.step, .log_every = config_.train.log_every,
                        .budget_bytes = plan_.budget.value,
                        .work_before = [this](int64_t step) { return run_.shapes.layer_tokens_before(step); },
                        .record = log::record});
}

void TrainingLoop::steps(LoopState& state, const StopSignals& signals) {
  page_.state(launch::RankState::training);
  while (state.step < run_.steps && !interrupted_) {
    StepMetrics metrics = one_step(state, signals);
    const bool last = state.step == run_.steps;
    interrupted_ = !last && stop_requested_;
    if (!last && !interrupted_) choose_window();
    if (last || validates(state)) validate_and_sample(metrics, last);  // also if interrupted: the metrics stay the same
    if (leads_) {
      log_->append(metrics);
      board_->append(metrics);
      progress_->step(metrics);
      if (interrupted_) record_interruption(state, signals);
    }
    if (state.skipped_in_a_row >= config_.train.max_bad_steps)
      throw Fault(diverged(state.skipped_in_a_row, config_.train));
    if (config_.checkpoint.every < 0) continue;
    if (last || interrupted_) save_now(state);
    else if (due(config_.checkpoint.every, state)) {
      pending_ = saver_.begin(state.step, state_json(state));
      pending_step_ = state.step;
    }
  }
}

void TrainingLoop::record_interruption(const LoopState& state, const StopSignals& signals) const {
  // Under a supervisor every signal arrives as SIGTERM. The supervisor records the signal that it got.
  const bool own = signals.stop_requested() && launch::environment().role != launch::Role::supervised;
  log::record(fmt::format("interrupted{} after step {}", own ? " by " + signals.signal() : "", state.step));
}

bool TrainingLoop::validates(const LoopState& state) const {
  if (config_.train.eval_every == 0) return false;
  const auto every = static_cast<double>(config_.train.eval_every);
  auto done = [&](int64_t step) {
    return std::floor(run_.shapes.full_steps_before(step, config_.train.schedule_by) / every);
  };
  return done(state.step) > done(state.step - 1);
}

void TrainingLoop::choose_window() {
  constexpr size_t kEnough = 3;  // the first one warms up
  // Ranks that hold the same blocks must use the same window, so with several ranks the planned window stays.
  if (groups_ || !plan_.strategy.moves() || config_.memory.window > 0 || window_chosen_ || times_.size() < kEnough) return;
  window_chosen_ = true;
  const int32_t window = window_by_measurement(plan_, plans_.at(times_.shape()), times_.typical());
  if (window == plan_.strategy.window) return;
  log::info("using memory.window {} instead of {}: the times of the first steps show that it is faster", window, plan_.strategy.window);
  plan_ = with_window(std::move(plan_), input_, window);
  plans_.forget();
  times_.clear();
}

StepMetrics TrainingLoop::one_step(LoopState& state, const StopSignals& signals) {
  const Stopwatch watch;
  page_.step(state.step, plan_.predicted.seconds);
  StepMetrics metrics;
  const double lr = learning_rate(config_.train, run_.shapes.full_steps_before(state.step, config_.train.schedule_by));
  const StepOutcome outcome = train_step(engine_, plans_, data_, config_.train.batch,
                                         {.step = state.step,
                                          .lr = lr,
                                          .sink = pending_.get(),
                                          .stop_requested = [&] { return signals.stop_requested(); }});
  stop_requested_ = outcome.stop;
  const double step_s = watch.seconds();
  const StepShape shape = run_.shapes.shape(state.step);
  if (!pending_) times_.add(shape, step_s, outcome.spans);
  measure_process(state.step);
  describe_shape(metrics, state.step);
  if (pending_) {
    // The time that updates waited, or the whole slowdown if that is more: writing also uses the cores.
    double save_s = save_delay(plans_.at(shape).step_with_save, outcome.spans);
    if (!times_.empty() && times_.shape() == shape) save_s = std::max(save_s, step_s - times_.usual());
    metrics[MetricId::save_s] = save_s;
    if (saver_.finish(*pending_, pending_step_)) {
      last_checkpoint_ = pending_->dir().string();
      page_.checkpoint(pending_step_);
    }
    pending_.reset();
  }
  state.step++;
  state.tokens += shape.tokens();
  state.skipped += outcome.skipped;
  state.skipped_in_a_row = outcome.skipped ? state.skipped_in_a_row + 1 : 0;
  if (outcome.skipped)
    log::warn("step {} skipped: loss {}, gradient norm {}", state.step, outcome.loss, outcome.gradient_norm);
  else
    last_loss_ = outcome.loss;
  metrics.step = state.step;
  metrics[MetricId::loss] = outcome.loss;
  metrics[MetricId::lr] = lr;
  metrics[MetricId::grad_norm] = outcome.gradient_norm;
  metrics[MetricId::tokens] = state.tokens;
  metrics[MetricId::step_s] = step_s;
  metrics.epochs = data_.epochs_after(state.step, config_.train.batch);
  metrics[MetricId::tokens_per_s] = static_cast<double>(shape.tokens()) / step_s;
  metrics[MetricId::mem_peak_bytes] = allocated_memory().peak + process_bytes_;
  metrics.skipped = outcome.skipped;
  experts_.see(outcome.routing, metrics);
  if (engine_.store() != nullptr) {
    metrics[MetricId::disk_read_bytes] = outcome.disk.read;
    metrics[MetricId::disk_written_bytes] = outcome.disk.written;
    metrics[MetricId::disk_experts_called] = outcome.disk.experts_called;
  }
  if (config_.train.precision == Precision::fp16) metrics[MetricId::loss_scale] = outcome.loss_scale;
  return metrics;
}

void TrainingLoop::describe_shape(StepMetrics& metrics, int64_t step) const {
  const StepShape shape = run_.shapes.shape(step);
  for (const CurriculumSettings& entry : config_.curriculum) {
    const double limit = Pacing(entry.pacing).at(run_.shapes.before(step, entry.pacing.unit));
    metrics.difficulty.emplace_back(limit_name(config_.curriculum, entry), limit);
    if (entry.changes_length()) metrics[MetricId::length] = shape.length;
  }
  if (config_.token_dropping.on()) metrics[MetricId::kept] = shape.processed();
  if (config_.token_dropping.on() || !config_.curriculum.empty())
    metrics[MetricId::layer_tokens] = run_.shapes.layer_tokens_before(step + 1);
}

void TrainingLoop::measure_process(int64_t step) {
  if (process_bytes_ != 0 && step % 64 != 0) return;  // asking the kernel costs milliseconds
  AllocatedMemory now = allocated_memory();
  process_bytes_ =
      std::max(process_bytes_, resident_memory().value - now.live - now.cached - allocated_memory(Tier::device).live);
}

void TrainingLoop::validate_and_sample(StepMetrics& metrics, bool last) {
  if (data_.valid_sequences() > 0) {
    if (token_bytes_.empty() && tokenizer_ && row_of(config_.objective.kind).predicts_next) token_bytes_ = token_bytes(*tokenizer_);
    last_valid_ = validate(engine_, plan_, data_,
                           {.batches = last ? 0 : config_.train.eval_batches,
                            .data_ranks = groups_ ? groups_->mesh().size(Axis::data) : 1,
                            .token_bytes = token_bytes_});
    metrics[MetricId::valid_loss] = last_valid_->loss;
    if (last_valid_->bits_per_byte > 0) metrics[MetricId::valid_bits_per_byte] = last_valid_->bits_per_byte;
    if (progress_) progress_->note(fmt::format("step {}: {}", metrics.step, show(*last_valid_)));
  }
  // Every rank that has the whole model generates the same sample. A model that is divided generates none.
  const bool whole = !groups_ || (groups_->mesh().layout().data == groups_->ranks() && groups_->mesh().layout().expert == 1);
  if (config_.train.sample_tokens > 0 && tokenizer_ && !run_.shape.family->bidirectional && whole) {
    const std::string& prompt = config_.train.sample_prompt;
    GenerateSettings settings{config_.train.sample_tokens, {0.8, 40, 0.95}, {}, config_.run.seed};
    metrics.sample = prompt + generate(engine_, *tokenizer_, {prompt}, settings).front().text;
  }
}

void TrainingLoop::save_now(const LoopState& state) {
  page_.state(interrupted_ ? launch::RankState::stopping : launch::RankState::saving);
  auto save = saver_.begin(state.step, state_json(state));
  engine_.run(plan_.final_save, {.step = state.step, .sink = save.get()});
  // No later step can save this state again. The steps since the last checkpoint are lost, so this must be reported.
  if (!saver_.finish(*save, state.step)) throw Fault("the checkpoint of this step could not be saved");
  last_checkpoint_ = save->dir().string();
  page_.checkpoint(state.step);
}

nlohmann::json TrainingLoop::state_json(const LoopState& state) {
  if (data_fingerprint_.empty()) data_fingerprint_ = data_.fingerprint();
  StepCounters counters = engine_.counters();
  nlohmann::json json{{"step", state.step},
          {"tokens", state.tokens},
          {"seed", config_.run.seed},
          {"skipped", state.skipped},
          {"skipped_in_a_row", state.skipped_in_a_row},
          {"updates", counters.updates},
          {"loss_scale", counters.loss_scale.scale},
          {"loss_scale_good_steps", counters.loss_scale.good_steps},
          {"micro_batch", plan_.micro_batch},
          {"data", data_fingerprint_}};
  if (nlohmann::json admissions = data_.admissions(); !admissions.is_null()) json["admissions"] = std::move(admissions);
  return json;
}

void TrainingLoop::compare_ranks() {
  const nlohmann::json mine{{"stage", plan_.stage},
                            {"predicted_peak_bytes", plan_.predicted_peak().value},
                            {"measured_peak_bytes", allocated_memory().peak + process_bytes_},
                            {"predicted_process_bytes", plan_.process.value},
                            {"measured_process_bytes", process_bytes_}};
  for (const std::string& rank : groups_->world().all_gather(print_json(mine))) ranks_.push_back(parse_json(rank));
}

// The same fields as "predicted" in plan.json. ("ops" in summary.json has both predicted and measured times.)
nlohmann::json TrainingLoop::measured() {
  const AllocatedMemory memory = allocated_memory();
  nlohmann::json kinds;
  for (int k = 0; k < kAllocationKinds; k++) kinds[std::string(name(static_cast<AllocationKind>(k)))] = memory.at_peak[k];
  kinds["process"] = process_bytes_;
  const Schedule& step = plans_.at(times_.shape()).step;
  return {{"step_s", times_.usual()},
          {"peak_bytes", memory.peak + process_bytes_},
          {"resting_bytes", memory.live},  // tensors that stay between steps
          {"memory", kinds},
          {"device_peak_bytes", allocated_memory(Tier::device).peak},
          {"stalls", stalls_json(stalls(step, times_.typical()))},
          {"busy_s", busy_json(step, busy_seconds(step, times_.typical()))}};
}

nlohmann::json TrainingLoop::summary_before(const LoopState& state) {
  if (const auto path = directory_.file("summary.json"); std::filesystem::exists(path)) {
    nlohmann::json before = try_parse_json(read_file(path));
    if (before.is_object() && before.value("steps", int64_t{-1}) == state.step && before.value("state", "") == "finished")
      return before;
  }
  nlohmann::json now = summary(state, "finished", 0);
  if (leads_) write_summary(now);
  return now;
}

nlohmann::json TrainingLoop::summary(const LoopState& state, const std::string& how, double seconds) const {
  nlohmann::json summary{{"state", how},
                         {"steps", state.step},
                         {"tokens", state.tokens},
                         {"seconds", seconds},
                         {"skipped_steps", state.skipped},
                         {"checkpoint", last_checkpoint_},
                         {"report", directory_.file("report.html").string()}};
  if (last_loss_) summary["loss"] = *last_loss_;
  if (last_valid_) {
    summary["valid_loss"] = last_valid_->loss;
    if (last_valid_->bits_per_byte > 0) summary["valid_bits_per_byte"] = last_valid_->bits_per_byte;
  }
  return summary;
}

void TrainingLoop::write_summary(nlohmann::json& summary) {
  if (!times_.empty()) {
    const Plan& plan = plans_.at(times_.shape());
    summary["measured"] = measured();
    // If the measured steps have another plan than the one in plan.json, add the prediction for them.
    if (&plan != &plan_)
      summary["predicted"] = {{"step_s", plan.predicted.seconds},
                              {"tokens_per_step", times_.shape().tokens()},
                              {"stalls", stalls_json(plan.predicted.stalls)},
                              {"limits", limits_json(plan.step, plan.speeds)}};
    if (!ranks_.empty()) summary["ranks"] = ranks_;
    summary["ops"] = ops_json(plan.step, op_seconds(plan.predicted.spans), times_.mean_ops());
    write_file_atomically(directory_.file("trace.json"), trace_json({{"predicted", &plan.step, plan.predicted.spans},
                                                               {"measured", &plan.step, times_.typical()}}));
  }
  write_file_atomically(directory_.file("summary.json"), print_any_json(summary, 1));
  write_report(directory_.path());
}

nlohmann::json TrainingLoop::leave_failure(const LoopState& state, const std::string& error, double seconds) {
  progress_.reset();
  nlohmann::json failed = summary(state, "failed", seconds);
  failed["error"] = error;
  if (groups_) failed["rank"] = groups_->world().rank();
  try {
    if (leads_) write_summary(failed);
    // Rank 0 may never learn of the failure: it waits for this rank until the launcher kills rank 0.
    else if (sees_run_dir_ && write_file_if_absent(directory_.file("summary.json"), print_any_json(failed, 1)))
      write_report(directory_.path());
  } catch (const std::exception& also) {  // the run's own error is the one to report
    log::warn("cannot record how the run ended: {}", also.what());
  }
  return failed;
}

}  // namespace megalith
