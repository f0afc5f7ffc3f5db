#include "run/run.h"

#include "checkpoint/hf_config.h"
#include "config/check.h"
#include "config/resolve_layout.h"
#include "config/resolved.h"
#include "memory/machine.h"
#include "memory/spill_folder.h"
#include "planner/plan.h"

namespace megalith {
namespace {

// Returns the folder that `model.from` names, or an empty path if it is not set.
std::filesystem::path folder_to_start_from(const Config& config, const std::function<void(const std::string&)>& say) {
  if (config.model.from.empty()) return {};
  try {
    return find_model_folder(config.model.from, say);
  } catch (const UserError& error) {
    throw about_model_from(error, config.model.from);
  }
}

// The shape may come from a folder. Its vocabulary may come from a tokenizer of `vocab` tokens (0: no tokenizer).
ModelShape complete_shape(const Config& config, const std::filesystem::path& folder, int64_t vocab) {
  const ModelSettings& model = config.model;
  ModelShape shape = model.shape;
  if (!model.from.empty()) {
    shape = read_hf_config(folder);
    if (model.shape.dropout.any()) shape.dropout = model.shape.dropout;
  }
  shape.head = config.objective.comparison().any() ? HeadKind::representation : HeadKind::vocabulary;
  shape.pooling = config.objective.pooling;
  if (shape.vocab == 0) shape.vocab = vocab;
  if (shape.vocab == 0)
    throw UserError({"", "model.vocab", "the size of the vocabulary", "nothing",
                     "set model.vocab or data.tokenizer"});
  if (vocab > shape.vocab)
    throw UserError({"", "model.vocab", fmt::format("at least the tokenizer's {} tokens", vocab),
                     std::to_string(shape.vocab), "remove model.vocab to use the tokenizer's size"});
  return shape;
}

// Returns how the head in model.from is used. Throws UserError if model.new_head would have no effect.
HeadUse head_use(const ModelSettings& model, const ModelShape& shape) {
  if (!model.new_head) return HeadUse::replaceable;
  const HeadTensors head = head_of(shape, HeadUse::fresh);
  if (head.names.empty())
    throw UserError({"", "model.new_head",
                     shape.head == HeadKind::representation
                         ? "false: with this objective, no head is read from the folder"
                         : fmt::format("false for a {} that is tied to the embedding table", head.what),
                     "true", "remove it: the head has no weights of its own"});
  return HeadUse::fresh;
}

}  // namespace

UserError about_model_from(const UserError& error, const std::filesystem::path& folder) {
  UserError::Parts parts = error.parts;
  parts.key = "model.from";
  if (parts.where == folder.string()) {
    parts.where = "";
    parts.got = fmt::format("{}: {}", folder.string(), parts.got);
  }
  return UserError(std::move(parts));
}

Layout check_run(const Config& config, int ranks) {
  check_for_training(config);
  if (!config.memory.spill.empty()) check_spill_folder(config.memory.spill);
  return resolve_layout(config, ranks);
}

Run prepare_run(const Config& config, const RunContext& context) {
  std::vector<std::string> notes;
  if (context.resume) notes.push_back(fmt::format("resumes the run in {}", config.run.dir));
  const std::filesystem::path weights =
      context.resume ? context.resume->dir : folder_to_start_from(config, context.say);
  const int64_t vocab = context.tokenizer.vocabulary(config, notes);
  const ModelShape shape = complete_shape(config, weights, vocab);
  check_model(config, shape);
  check_model_layout(shape, context.mesh.layout());
  const StepShapes shapes(config, shape.layers);
  const int64_t cores = std::max<int64_t>(1, usable_cores() / context.host_ranks);
  return {.config = config,
          .shape = shape,
          .mesh = context.mesh,
          .host_ranks = context.host_ranks,
          .threads = config.train.threads > 0 ? config.train.threads : cores,
          .resume = context.resume,
          .weights = weights,
          .head = context.resume ? HeadUse::required : head_use(config.model, shape),
          .shapes = shapes,
          .steps = shapes.steps_for(config.train.steps, config.train.schedule_by),
          .notes = std::move(notes)};
}

PlanInput plan_input(const Run& run) {
  PlanInput input = plan_input(run.config, run.shape, run.mesh.layout(), run.shapes);
  input.stage = run.mesh.stage();
  input.host_ranks = run.host_ranks;
  input.threads = run.threads;
  input.resumed = run.resume.has_value();
  return input;
}

std::string resolved_yaml(const Run& run, const Plan& plan) {
  Config resolved = run.config;
  resolved.model.shape = run.shape;
  resolved.parallel.data = run.mesh.layout().data;
  resolved.train.threads = run.threads;
  resolved.train.micro_batch = plan.micro_batch;
  return to_yaml(resolved);
}

}  // namespace megalith
