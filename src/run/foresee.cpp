#include "run/foresee.h"

#include "base/log.h"
#include "base/mistakes.h"
#include "checkpoint/model_tensors.h"
#include "engine/threads.h"
#include "planner/process.h"
#include "run/data_files.h"
#include "run/loss_record.h"
#include "run/resume.h"
#include "run/setting_path.h"
#include "text/same_tokens.h"

namespace megalith {
namespace {

// Warns if a run starts from weights that belong to another tokenizer: then the ids have other meanings for the model.
void warn_of_other_tokens(const Run& run, const Tokenizer* given) {
  const TokenizerSettings& wanted = run.config.data.tokenizer;
  const std::string& folder = run.config.model.from;
  if (run.resume || folder.empty() || (wanted.path.empty() && wanted.train_vocab == 0)) return;
  const auto own = tokenizer_of_folder(run.weights);
  if (own && !given)
    log::warn("data.tokenizer trains new tokens, but the weights in {} belong to the tokenizer in that folder: remove "
              "data.tokenizer to use it", folder);
  else if (const int64_t other = own ? different_tokens(*own, *given) : 0; other > 0)
    log::warn("{} tokens of data.tokenizer differ from those of the tokenizer in {}, which the weights belong to: remove "
              "data.tokenizer to use that one", other, folder);
  else if (const int64_t size = given ? given->vocab_size() : wanted.train_vocab; !own && size < run.shape.vocab)
    log::warn("data.tokenizer has {} tokens, but the model in {} has {}: if it is not the tokenizer of this model, the weights "
              "do not fit its tokens", size, folder, run.shape.vocab);
}

}  // namespace

Foreseen foresee(const Config& config, const Layout& layout, const ForeseenBy& by) {
  check_curriculum(config);
  const Config settings = by.resume ? resume_config(config.run.dir, config, layout) : config;
  auto tokenizer = std::make_unique<ForeseenTokenizer>(by.resume.has_value());
  Run run = prepare_run(
      settings, {.mesh = Mesh(layout), .host_ranks = by.host_ranks, .resume = by.resume, .tokenizer = *tokenizer});
  set_threads(run.threads);
  PlanInput input = plan_input(run);
  input.process = measured_process(by.transport) + transport_of(layout.ranks()) + product_buffers(input);
  if (!tokenizer->tokenizer()) input.process += tokenizer_to_come(settings.data.tokenizer.train_vocab);
  return {std::move(tokenizer), std::move(run), std::move(input)};
}

Foreseen foresee_training(const Config& config, const Layout& layout, const ForeseenBy& by) {
  Mistakes mistakes;
  std::optional<Foreseen> foreseen;
  mistakes.none_in([&] { check_data_files(config.data); });
  mistakes.none_in([&] { foreseen.emplace(foresee(config, layout, by)); });
  mistakes.throw_any();
  return std::move(*foreseen);
}

void check_files(const Foreseen& foreseen) {
  const Run& run = foreseen.run;
  const DataSettings& data = run.config.data;
  const bool trains_tokenizer = !foreseen.tokenizer->tokenizer() && data.tokenizer.train_vocab > 0;
  if (!foreseen.tokenizer->tokenizer() && !trains_tokenizer) check_shards_only(data);
  if (trains_tokenizer) files_to_train_tokenizer_on(data);
  if (run.weights.empty()) return;
  const auto check = [&] { check_weights(run.shape, run.weights, run.head); };
  if (run.resume) check();
  else for_setting("model.from", run.weights, check);
  warn_of_other_tokens(run, foreseen.tokenizer->tokenizer());
}

}  // namespace megalith
