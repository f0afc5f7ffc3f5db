#include "run/outlook.h"

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/store.h"
#include "config/check.h"
#include "engine/threads.h"
#include "memory/machine.h"
#include "memory/spill_folder.h"
#include "planner/refusal.h"
#include "run/loss_record.h"
#include "run/run_directory.h"

namespace megalith {
namespace {

// The tokenizer that the run has or will take; of one that will be trained only the size is known.
int64_t vocabulary(const Config& config, bool begun, Prospect& prospect) {
  const auto take = [&](std::unique_ptr<Tokenizer> tokenizer, const std::string& from) -> int64_t {
    if (!tokenizer) return 0;
    prospect.tokenizer = std::move(tokenizer);
    prospect.notes.push_back(fmt::format("vocabulary of {} tokens from {}", prospect.tokenizer->vocab_size(), from));
    return prospect.tokenizer->vocab_size();
  };
  const std::filesystem::path kept = std::filesystem::path(config.run.dir) / "tokenizer.json";
  if (begun && std::filesystem::exists(kept)) return take(load_tokenizer(kept), kept.string());
  if (!config.data.tokenizer.path.empty())
    return take(load_tokenizer(config.data.tokenizer.path), config.data.tokenizer.path);
  if (config.data.tokenizer.train_vocab > 0) {
    if (config.model.shape.vocab == 0)
      prospect.notes.push_back(
          fmt::format("vocabulary of {} tokens as data.tokenizer asks for: the tokenizer is trained when the run begins",
                      config.data.tokenizer.train_vocab));
    return config.data.tokenizer.train_vocab;
  }
  if (!config.model.from.empty()) return take(tokenizer_of_folder(config.model.from), config.model.from);
  return 0;
}

}  // namespace

std::filesystem::path folder_to_start_from(const Config& config, const std::function<void(const std::string&)>& say) {
  if (config.model.from.empty()) return {};
  try {
    return find_model_folder(config.model.from, say);
  } catch (const UserError& error) {
    UserError::Parts parts = error.parts;
    parts.key = "model.from";
    throw UserError(std::move(parts));
  }
}

void complete_shape(Config& config, const std::filesystem::path& folder, int64_t vocab) {
  ModelShape& shape = config.model.shape;
  if (!config.model.from.empty()) {
    Dropout dropout = shape.dropout;
    shape = read_hf_config(folder);
    if (dropout.any()) shape.dropout = dropout;
  }
  if (shape.vocab == 0) shape.vocab = vocab;
  if (shape.vocab == 0)
    throw UserError({"", "model.vocab", "the size of the vocabulary", "nothing",
                     "there is no tokenizer to take it from: set model.vocab or data.tokenizer"});
  if (vocab > shape.vocab)
    throw UserError({"", "model.vocab", fmt::format("at least the tokenizer's {} tokens", vocab),
                     std::to_string(shape.vocab), "leave model.vocab out to take the tokenizer's size"});
  check_model(config);
}

Plan plan_run(Config& config, Measuring measuring, const Seat& seat, Begun begun) {
  if (config.train.threads == 0) config.train.threads = std::max<int64_t>(1, usable_cores() / seat.host_ranks);
  set_threads(config.train.threads);
  try {
    Plan plan = make_plan(config, measuring, seat);
    config.train.micro_batch = plan.micro_batch;
    return plan;
  } catch (const DoesNotFit& refusal) {
    if (begun == Begun::no) throw;
    throw once_begun(refusal);
  }
}

Config go_on_with(const Config& saved, const Config& now) {
  Config next = continue_config(saved, now);
  if (saved.parallel == now.parallel) return next;
  next.train.micro_batch = now.train.micro_batch;
  next.train.threads = now.train.threads;
  return next;
}

Prospect look_ahead(Config config) {
  check_for_training(config);
  if (!config.memory.spill.empty()) check_spill_folder(config.memory.spill);
  check_curriculum(config);
  Prospect prospect;
  const std::filesystem::path run = config.run.dir;
  const auto checkpoints = list_checkpoints(run / "checkpoints");
  if (const auto saved = saved_config(run); saved && !checkpoints.empty()) {
    config = go_on_with(*saved, config);
    prospect.begun = Begun::yes;
    prospect.notes.push_back(fmt::format("goes on with the run in {}", run.string()));
  }
  const auto ignore = [](const std::string&) {};
  const std::filesystem::path folder = checkpoints.empty() ? folder_to_start_from(config, ignore) : checkpoints.front().dir;
  complete_shape(config, folder, vocabulary(config, !checkpoints.empty(), prospect));
  prospect.config = std::move(config);
  return prospect;
}

}  // namespace megalith
