#include "run/run.h"

#include "base/mistakes.h"
#include "checkpoint/hf_config.h"
#include "config/check.h"
#include "config/resolve_layout.h"
#include "config/resolved.h"
#include "memory/machine.h"
#include "memory/spill_folder.h"
#include "planner/plan.h"
#include "run/data_files.h"
#include "run/setting_path.h"

namespace megalith {
namespace {

// Returns the folder that `model.from` names, or an empty path if it is not set.
std::filesystem::path folder_to_start_from(const Config& config, const std::function<void(const std::string&)>& say) {
  if (config.model.from.empty()) return {};
  return for_setting("model.from", config.model.from, [&] { return find_model_folder(config.model.from, say); });
}

// Returns the shape of the settings or of the folder. The vocabulary may still be open.
ModelShape begun_shape(const Config& config, const std::filesystem::path& folder) {
  const ModelSettings& model = config.model;
  ModelShape shape = model.from.empty() ? model.shape : read_hf_config(folder);
  if (!model.from.empty() && model.shape.dropout.any()) shape.dropout = model.shape.dropout;
  shape.head = config.objective.compares() ? HeadKind::representation : HeadKind::vocabulary;
  shape.pooling = config.objective.pooling;
  return shape;
}

// Throws UserError for a tokenizer of `vocab` tokens, which is more than the model in a folder has.
[[noreturn]] void refuse_tokenizer(const Config& config, int64_t vocab, int64_t most) {
  const std::string& folder = config.model.from;
  const TokenizerSettings& wanted = config.data.tokenizer;
  const std::string expected = fmt::format("at most the {} tokens of the model in {}", most, folder);
  const std::string got = fmt::format("{} tokens", vocab);
  if (wanted.path.empty() && wanted.train_vocab == 0)
    throw UserError({folder, "tokenizer", expected, got, "the folder has the tokenizer of another model: replace it"});
  throw UserError({"", "data.tokenizer", expected, got,
                   tokenizer_of_folder(folder) ? "remove data.tokenizer: the folder has its own tokenizer"
                                               : "give the tokenizer that the model was trained with"});
}

// Completes a shape by the vocabulary of a tokenizer of `vocab` tokens (0: no tokenizer).
ModelShape complete_shape(const Config& config, ModelShape shape, int64_t vocab) {
  if (shape.vocab == 0) shape.vocab = vocab;
  if (shape.vocab == 0) {
    check_shards_only(config.data);
    throw UserError({"", "model.vocab", "the size of the vocabulary", "nothing",
                     "set it to the size of the tokenizer that made the token shards"});
  }
  if (vocab <= shape.vocab) return shape;
  if (!config.model.from.empty()) refuse_tokenizer(config, vocab, shape.vocab);
  throw UserError({"", "model.vocab", fmt::format("at least the tokenizer's {} tokens", vocab), std::to_string(shape.vocab),
                   "set model.vocab: auto to use the tokenizer's size"});
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

Layout check_run(const Config& config, int ranks, std::string_view from) {
  Layout layout;
  Mistakes mistakes;
  mistakes.none_in([&] { check_for_training(config); });
  mistakes.none_in([&] { if (!config.memory.spill.empty()) check_spill_folder(config.memory.spill); });
  mistakes.none_in([&] { layout = resolve_layout(config, ranks, from); });
  mistakes.throw_any();
  return layout;
}

Run prepare_run(const Config& config, const RunContext& context) {
  std::vector<std::string> notes;
  if (context.resume) notes.push_back(fmt::format("resumes the run in {}", config.run.dir));
  const std::filesystem::path weights =
      context.resume ? context.resume->dir : folder_to_start_from(config, context.say);
  const ModelShape begun = begun_shape(config, weights);  // before a tokenizer is trained, which may take long
  const ModelShape shape = complete_shape(config, begun, context.tokenizer.vocabulary(config, notes));
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
