#include "run/foresee.h"

#include "checkpoint/model_tensors.h"
#include "engine/threads.h"
#include "planner/process.h"
#include "run/data_files.h"
#include "run/loss_record.h"
#include "run/resume.h"

namespace megalith {

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

void check_files(const Foreseen& foreseen) {
  const Run& run = foreseen.run;
  const DataSettings& data = run.config.data;
  const bool trains_tokenizer = !foreseen.tokenizer->tokenizer() && data.tokenizer.train_vocab > 0;
  check_data_files(data, foreseen.tokenizer->tokenizer() || trains_tokenizer);
  if (trains_tokenizer) files_to_train_tokenizer_on(data);
  if (run.weights.empty()) return;
  try {
    check_weights(run.shape, run.weights, run.head);
  } catch (const UserError& error) {
    if (run.resume) throw;
    throw about_model_from(error, run.weights);
  }
}

}  // namespace megalith
