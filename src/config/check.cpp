#include "config/check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/either.h"
#include "base/error.h"
#include "base/mistakes.h"
#include "config/experts_options.h"
#include "config/names.h"
#include "config/options.h"
#include "config/yaml.h"
#include "families/registry.h"

namespace megalith {
namespace {

ShapeCheck checker(const WhereOf& where) {
  return {where, [](std::string_view key) { return find_option(key)->expected(); }};
}

std::string show(int64_t value) {
  return fmt::format("{}", value);
}

// A setting that has no effect must have its default value, so that no written value is silently ignored.
void check_applies(const Config& config, const ShapeCheck& check) {
  static const Config defaults;
  Mistakes mistakes;
  for (const Option& option : options()) {
    if (!option.applies || option.applies(config)) continue;
    const std::optional<std::string> value = option.get(config);
    if (!value) continue;  // another key has the value
    const std::string usual = option.get(defaults).value_or("");
    mistakes.none_in([&] {
      check.require(value == usual, option.name, fmt::format("{} (the default) unless {}", usual, option.applies_when),
                    *value,
                    fmt::format("it is used only if {}: change that, or remove {}", option.applies_when, option.key()));
    });
  }
  mistakes.throw_any();
}

void check_rates(const Config& config, const ShapeCheck& check) {
  check.require(config.train.min_lr <= config.train.lr, "train.min_lr", fmt::format("at most train.lr ({})", config.train.lr),
                fmt::format("{}", config.train.min_lr));
}

void check_weights(const Config& config, const ShapeCheck& check) {
  double weights = 0;
  for (double weight : config.data.weights) weights += weight;
  for (double weight : config.data.weights)
    check.require(weight >= 1e-6 * weights, "data.train",
                  fmt::format("a weight of at least a millionth of the sum of all weights ({})", weights),
                  fmt::format("{}", weight), "remove this entry or raise its weight");
}

void check_schedule(const Config& config, const ShapeCheck& check) {
  const TrainSettings& train = config.train;
  check.require(train.warmup <= train.steps, "train.warmup",
                train.schedule_by == Counted::steps
                    ? fmt::format("at most train.steps ({})", train.steps)
                    : fmt::format("at most the run's {} steps, counted in full batches of {} tokens", train.steps,
                                  config.step_sequences() * config.data.sequence),
                show(train.warmup));
  const int64_t after_warmup = train.steps - train.warmup;
  check.require(train.decay != Decay::wsd || train.decay_steps <= after_warmup, "train.decay_steps",
                fmt::format("at most the {} steps after train.warmup", after_warmup), show(train.decay_steps));
}

void check_micro_batch(const Config& config, const ShapeCheck& check) {
  const int64_t micro_batch = config.train.micro_batch, sequences = config.step_sequences();
  if (micro_batch == 0) return;
  check.require(sequences % micro_batch == 0, "train.micro_batch",
                config.objective.compares()
                    ? fmt::format("a divisor of the {} sequences of a step (train.batch x {})", sequences,
                                  config.objective.sequences_of_sample())
                    : fmt::format("a divisor of train.batch ({})", sequences),
                show(micro_batch), nearby_divisors(sequences, micro_batch));
}

void check_curriculum(const Config& config, const ShapeCheck& check) {
  int64_t lengths = 0, number = 0;
  for (const CurriculumSettings& entry : config.curriculum) {
    const std::string name = fmt::format("curriculum[{}]", number++);
    if (!entry.changes_length()) continue;
    check.require(++lengths == 1, "curriculum", "at most one entry that changes the length of sequences", "several",
                  "keep one entry with apply: truncate or reshape");
    check.require(entry.pacing.to <= static_cast<double>(config.data.sequence),
                  name + (entry.pacing.table.empty() ? ".to" : ".pacing"),
                  fmt::format("at most data.sequence ({})", config.data.sequence), fmt::format("{}", entry.pacing.to));
  }
}

void check_token_dropping(const Config& config, const ShapeCheck& check) {
  if (!config.token_dropping.on()) return;
  const PacingSettings& pacing = config.token_dropping.pacing;
  check.require(pacing.from >= 1, "token_dropping.from", "a whole number of tokens from 1", "0 or no value",
                "set how many tokens of a sequence the layers keep at first");
  double longest = static_cast<double>(config.data.sequence);
  for (const CurriculumSettings& entry : config.curriculum)
    if (entry.changes_length()) longest = entry.pacing.to;
  check.require(pacing.from < longest, pacing.table.empty() ? "token_dropping.from" : "token_dropping.pacing",
                fmt::format("fewer tokens than the longest sequence ({})", longest), fmt::format("{}", pacing.from),
                "lower it: otherwise no token is dropped");
  check.require(pacing.to >= pacing.from, "token_dropping.to", fmt::format("at least token_dropping.from ({})", pacing.from),
                pacing.to == 0 ? "nothing" : fmt::format("{}", pacing.to));
  check.require(pacing.to <= static_cast<double>(config.data.sequence),
                pacing.table.empty() ? "token_dropping.to" : "token_dropping.pacing",
                fmt::format("at most data.sequence ({})", config.data.sequence), fmt::format("{}", pacing.to));
}

// Checks of token dropping that need the number of layers.
void check_dropping_layers(const Config& config, int64_t layers, const ShapeCheck& check) {
  if (!config.token_dropping.on()) return;
  const std::vector<int64_t> dropping = config.token_dropping.layers_of(layers);
  check.require(!dropping.empty(), "token_dropping.layers", "a model with at least 3 layers, because the value is middle",
                fmt::format("{} layers", layers), "list the layers");
  check.require(dropping.back() < layers, "token_dropping.layers", fmt::format("layers from 0 to {}", layers - 1),
                fmt::format("{}", dropping.back()));
}

// We count tokens times layers in 63 bits, and a run with short steps can have many times more steps. The limit is
// about fifty times what the largest models were trained with.
void check_length(const Config& config, int64_t layers, const ShapeCheck& check) {
  constexpr double kMost = 1e17;
  const double a_step = static_cast<double>(config.step_sequences()) * static_cast<double>(config.data.sequence) *
                        static_cast<double>(layers);
  check.require(static_cast<double>(config.train.steps) * a_step <= kMost, "train.steps",
                fmt::format("at most {:.0f} steps of {} tokens", std::max(1.0, std::floor(kMost / a_step)),
                            config.step_sequences() * config.data.sequence),
                show(config.train.steps), "shorten the run");
}

// Checks of an objective that compares sequences.
void check_comparison(const Config& config, const ModelShape& shape, const ShapeCheck& check) {
  if (!config.objective.compares()) return;
  check.require(config.train.batch >= 2, "train.batch", "at least 2 pairs: the other pairs are the negatives",
                show(config.train.batch), "raise train.batch; larger batches have more negatives");
  check.require(config.objective.pairs != Pairs::dropout || shape.dropout.any(), "objective.pairs",
                "dropout in the model: without it, the two sequences of a pair are equal", "dropout",
                "set model.dropout.residual: 0.1, or objective.pairs: neighbours");
  check.require(config.objective.columns.size() == 2, "objective.columns", "two fields: [anchor, positive]",
                fmt::format("{} fields", config.objective.columns.size()),
                "list texts that do not belong to the first one in objective.negative_columns");
  check.require(!shape.experts.any() || config.objective.pairs == Pairs::neighbours, "objective.pairs",
                "neighbours for a model with experts: padding would take the place of tokens in experts",
                std::string(name_of(config.objective.pairs)));
  check.require(config.train.sample_tokens == 0, "train.sample_tokens", "0: this objective trains no model that writes text",
                show(config.train.sample_tokens), "remove it");
  check.require(!config.token_dropping.on(), "token_dropping", "no token dropping with this objective",
                "token dropping", "remove token_dropping");
  for (const CurriculumSettings& entry : config.curriculum)
    check.require(entry.metric != "loss", "curriculum", "another metric: with this objective, a sample has no loss of its own",
                  "loss", "use length or rarity, or a file of your own");
  check.require(config.data.attention == AttentionReach::sequence, "data.attention",
                "sequence, because a sequence has one representation", "document", "remove data.attention");
}

// Checks of an objective that changes the order of tokens.
void check_moved_text(const Config& config, const ShapeCheck& check) {
  if (!row_of(config.objective.kind).moves_text) return;
  check.require(config.data.attention == AttentionReach::sequence, "data.attention",
                "sequence, because the objective moves text to the end of a sequence", "document", "remove data.attention");
  check.require(!config.token_dropping.keep_special, "token_dropping.keep_special", "false with this objective", "true",
                "remove it");
  constexpr double kShortest = 8;
  for (const CurriculumSettings& entry : config.curriculum)
    check.require(!entry.changes_length() || entry.pacing.from >= kShortest, "curriculum",
                  fmt::format("sequences of at least {} tokens with this objective", kShortest),
                  fmt::format("{}", entry.pacing.from), "raise `from`");
}

void check_objective(const Config& config, const ModelShape& shape, const ShapeCheck& check) {
  const Family& family = *shape.family;
  const ObjectiveRow& objective = row_of(config.objective.kind);
  const std::vector<std::string_view> fitting =
      objective_words([&](const ObjectiveRow& row) { return fits(row, family.bidirectional); });
  const std::string others =
      either(family_names([&](const Family& each) { return fits(objective, each.bidirectional); }));
  check.require(fits(objective, family.bidirectional), "objective.kind",
                fmt::format("{}, because model.arch is {}", either(fitting), family.name), std::string(objective.word),
                family.bidirectional ? fmt::format("set objective: {}, or model.arch: {}", either(fitting), others)
                                     : fmt::format("for {}, set model.arch: {}", objective.word, others));
}

void check_sizes(const ModelShape& s, const ShapeCheck& check) {
  using Sizes = std::vector<std::pair<std::string_view, int64_t>>;
  const Sizes written{{"model.layers", s.layers}, {"model.hidden", s.hidden}, {"model.heads", s.heads}};
  const Sizes derived{{"model.ffn", s.ffn}, {"model.context", s.context}};  // the defaults depend on those
  for (const Sizes& sizes : {written, derived}) {
    Mistakes mistakes;
    for (const auto& [key, size] : sizes) mistakes.none_in([&] { check.at_least_1(size, key); });
    mistakes.throw_any();
  }
}

void check_sequence(const Config& config, const ModelShape& s, const ShapeCheck& check) {
  check.require(config.data.sequence <= s.context, "data.sequence",
                fmt::format("at most model.context ({})", s.context), show(config.data.sequence),
                config.model.from.empty() ? "shorten it, or raise model.context"
                                          : "shorten it: the model has no more positions");
  check.require(s.window == 0 || config.data.sequence <= s.window, "data.sequence",
                fmt::format("at most the model's sliding_window ({})", s.window), show(config.data.sequence),
                "sliding-window attention is not supported; shorten data.sequence");
}

}  // namespace

void check_settings(const Config& config, const WhereOf& where) {
  const ShapeCheck check = checker(where);
  Mistakes mistakes;
  for (const auto& rule : {check_applies, check_rates, check_weights, check_curriculum, check_token_dropping, check_schedule,
                           check_micro_batch})
    mistakes.none_in([&] { rule(config, check); });
  mistakes.throw_any();
}

void check_model(const Config& config, const ModelShape& s, const WhereOf& where) {
  const ShapeCheck check = checker(where);
  check_sizes(s, check);  // the other checks divide by them
  Mistakes mistakes;
  mistakes.none_in([&] { check_shape(s, check); });
  mistakes.none_in([&] { check_experts(config, s, where); });
  mistakes.none_in([&] { check_objective(config, s, check); });
  mistakes.none_in([&] { check_comparison(config, s, check); });
  mistakes.none_in([&] { check_moved_text(config, check); });
  mistakes.none_in([&] { check_dropping_layers(config, s.layers, check); });
  mistakes.none_in([&] { check_length(config, s.layers, check); });
  mistakes.none_in([&] { check_sequence(config, s, check); });
  mistakes.throw_any();
}

void check_for_training(const Config& config, const WhereOf& where) {
  const ShapeCheck check = checker(where);
  check.require(!config.data.train.empty(), "data.train", find_option("data.train")->expected(), "nothing",
                "name the text to train on: data: {train: my.txt}");
  // Only compares sizes that the user wrote. `model.vocab: auto` follows the trained tokenizer, which is smaller than asked
  // for if the text is small.
  int64_t vocab = config.model.shape.vocab, trained = config.data.tokenizer.train_vocab;
  check.require(vocab == 0 || trained <= vocab, "data.tokenizer.vocab", fmt::format("at most model.vocab ({})", vocab),
                show(trained), "lower it, or set model.vocab: auto");
}

}  // namespace megalith
