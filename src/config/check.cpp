#include "config/check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "config/experts_options.h"
#include "config/names.h"
#include "config/options.h"
#include "config/yaml.h"

namespace megalith {
namespace {

class Checker {
 public:
  explicit Checker(const WhereOf& where) : where_(where) {}

  void require(bool holds, std::string_view key, const std::string& expected, const std::string& got,
               const std::string& hint = "") const {
    if (!holds) throw UserError({where_ ? where_(key) : "", std::string(key), expected, got, hint});
  }

  void at_least_1(int64_t value, std::string_view key) const {
    require(value >= 1, key, find_option(key)->expected(), value == 0 ? "nothing" : fmt::format("{}", value),
            "give it, or choose a model.preset");
  }

 private:
  const WhereOf& where_;
};

// "use 4, 6, 8 or 12": the divisors of `number` nearest to `wanted`.
std::string nearby_divisors(int64_t number, int64_t wanted) {
  constexpr size_t kShown = 4;
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= number; d++)
    if (number % d == 0) {
      divisors.push_back(d);
      if (d * d != number) divisors.push_back(number / d);
    }
  auto distance = [&](int64_t d) { return std::abs(d - wanted); };
  std::sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
  });
  if (divisors.size() > kShown) divisors.resize(kShown);
  std::sort(divisors.begin(), divisors.end());
  if (divisors.size() == 1) return fmt::format("use {}", divisors[0]);
  return fmt::format("use {} or {}", fmt::join(divisors.begin(), divisors.end() - 1, ", "), divisors.back());
}

std::string show(int64_t value) {
  return fmt::format("{}", value);
}

// A setting that another one makes meaningless must have its default: nothing that is written is ignored.
void check_applies(const Config& config, const Checker& check) {
  static const Config defaults;
  for (const Option& option : options()) {
    if (!option.applies || option.applies(config)) continue;
    const std::optional<std::string> value = option.get(config);
    if (!value) continue;  // another key carries it
    const std::string usual = option.get(defaults).value_or("");
    check.require(value == usual, option.name, fmt::format("{} unless {}", usual, option.applies_when), *value,
                  fmt::format("remove {} or make it so that {}", option.key(), option.applies_when));
  }
}

void check_attention(const ModelShape& s, const Checker& check) {
  // No class of Hugging Face's has both: such a checkpoint would be for us alone.
  const bool any_heads = s.head_size > 0 && !s.output_bias;
  check.require(any_heads || s.hidden % s.heads == 0, "model.heads",
                fmt::format("a divisor of model.hidden ({})", s.hidden), show(s.heads),
                nearby_divisors(s.hidden, s.heads));
  if (s.arch != Arch::llama) {
    check.require(s.kv_heads == s.heads, "model.kv_heads",
                  fmt::format("model.heads ({}) as model.arch {} has no grouped-query attention", s.heads,
                              name(s.arch)),
                  show(s.kv_heads), "remove it");
    return;
  }
  check.at_least_1(s.kv_heads, "model.kv_heads");
  check.require(s.heads % s.kv_heads == 0, "model.kv_heads",
                fmt::format("a divisor of model.heads ({})", s.heads), show(s.kv_heads),
                nearby_divisors(s.heads, s.kv_heads));
  check.require(s.head_size % 2 == 0, "model.head_dim", "an even number, for rotary positions",
                show(s.head_size));
  check.require(!s.output_bias || s.qkv_bias, "model.output_bias", "false unless model.qkv_bias is true", "true",
                "set model.qkv_bias: true, or remove it");
  check.require(
      s.head_dim() % 2 == 0, "model.heads",
      fmt::format("an even model.hidden / model.heads, for rotary positions, with model.hidden {}", s.hidden),
      fmt::format("{} / {} = {}", s.hidden, s.heads, s.head_dim()), "choose another number of heads");
}

// Fields that an architecture does not have keep their defaults.
void check_foreign_fields(const ModelShape& s, const Checker& check) {
  check.require(s.arch == Arch::llama || s.rope_theta == ModelShape{}.rope_theta, "model.rope_theta",
                "it only where model.arch is llama",
                fmt::format("it with model.arch {}", name(s.arch)), "remove it");
  auto only_llama = [&](bool is_default, std::string_view key) {
    check.require(s.arch == Arch::llama || is_default, key, "it only where model.arch is llama",
                  fmt::format("it with model.arch {}", name(s.arch)), "remove it");
  };
  only_llama(s.head_size == 0, "model.head_dim");
  only_llama(!s.qkv_bias, "model.qkv_bias");
  only_llama(!s.output_bias, "model.output_bias");
  if (s.arch == Arch::bert)
    check.require(s.token_types >= 1, "model.token_types", "at least 1 as model.arch is bert",
                  show(s.token_types));
  else
    check.require(s.token_types == 0, "model.token_types", fmt::format("0 as model.arch is {}", name(s.arch)),
                  show(s.token_types), "remove it");
}

void check_curriculum(const Config& config, const Checker& check) {
  int64_t lengths = 0, number = 0;
  for (const CurriculumSettings& entry : config.curriculum) {
    const std::string name = fmt::format("curriculum[{}]", number++);
    if (!entry.changes_length()) continue;
    check.require(++lengths == 1, "curriculum", "one entry at most that changes the length", "several",
                  "keep one truncate or reshape");
    check.require(entry.pacing.to <= static_cast<double>(config.data.sequence),
                  name + (entry.pacing.table.empty() ? ".to" : ".pacing"),
                  fmt::format("at most data.sequence ({})", config.data.sequence), fmt::format("{}", entry.pacing.to));
  }
}

void check_token_dropping(const Config& config, const Checker& check) {
  if (!config.token_dropping.on()) return;
  const PacingSettings& pacing = config.token_dropping.pacing;
  check.require(pacing.from >= 1, "token_dropping.from", "a whole number of tokens from 1", "0 or nothing",
                "say how many tokens of a sequence are kept at first");
  double longest = static_cast<double>(config.data.sequence);
  for (const CurriculumSettings& entry : config.curriculum)
    if (entry.changes_length()) longest = entry.pacing.to;
  check.require(pacing.from < longest, pacing.table.empty() ? "token_dropping.from" : "token_dropping.pacing",
                fmt::format("fewer tokens at first than the longest sequence has ({}), or nothing is ever dropped", longest),
                fmt::format("{}", pacing.from));
  check.require(pacing.to >= pacing.from, "token_dropping.to", fmt::format("at least token_dropping.from ({})", pacing.from),
                pacing.to == 0 ? "nothing" : fmt::format("{}", pacing.to));
  check.require(pacing.to <= static_cast<double>(config.data.sequence),
                pacing.table.empty() ? "token_dropping.to" : "token_dropping.pacing",
                fmt::format("at most data.sequence ({})", config.data.sequence), fmt::format("{}", pacing.to));
}

// What needs to know how many layers there are.
void check_dropping_layers(const Config& config, const Checker& check) {
  if (!config.token_dropping.on()) return;
  const int64_t layers = config.model.shape.layers;
  const std::vector<int64_t> dropping = config.token_dropping.layers_of(layers);
  check.require(!dropping.empty(), "token_dropping.layers", "a model of at least 3 layers for middle",
                fmt::format("{}", layers), "list the layers");
  check.require(dropping.back() < layers, "token_dropping.layers", fmt::format("layers from 0 to {}", layers - 1),
                fmt::format("{}", dropping.back()));
}

// Tokens, times the layers that they go through, are counted in 63 bits, and short steps may make a run many times as long.
// Fifty times what the largest models were trained with.
void check_length(const Config& config, const Checker& check) {
  constexpr double kMost = 1e17;
  const double a_step = static_cast<double>(config.train.batch) * static_cast<double>(config.data.sequence) *
                        static_cast<double>(config.model.shape.layers);
  check.require(static_cast<double>(config.train.steps) * a_step <= kMost, "train.steps",
                fmt::format("at most {:.0f} of {} tokens, as a run is", std::max(1.0, std::floor(kMost / a_step)),
                            config.train.batch * config.data.sequence),
                show(config.train.steps), "shorten the run");
}

void check_objective(const Config& config, const Checker& check) {
  bool bert = config.model.shape.arch == Arch::bert, masked = config.objective.kind == Objective::masked;
  std::string arch(name(config.model.shape.arch)), objective(name_of(config.objective.kind));
  check.require(!bert || masked, "objective.kind", "masked as model.arch is bert", objective,
                "write objective: masked, or choose gpt2 or llama");
  check.require(bert || !masked, "objective.kind", fmt::format("causal or prefix as model.arch is {}", arch),
                objective, "masked needs model.arch bert");
}

}  // namespace

void check_settings(const Config& config, const WhereOf& where) {
  Checker check(where);
  const TrainSettings& train = config.train;
  check_applies(config, check);
  check.require(train.min_lr <= train.lr, "train.min_lr", fmt::format("at most train.lr ({})", train.lr),
                fmt::format("{}", train.min_lr));
  double weights = 0;
  for (double weight : config.data.weights) weights += weight;
  for (double weight : config.data.weights)
    check.require(weight >= 1e-6 * weights, "data.train",
                  fmt::format("weights of at least a millionth of their sum ({})", weights),
                  fmt::format("{}", weight), "leave it out");
  check_curriculum(config, check);
  check_token_dropping(config, check);
  check.require(train.warmup <= train.steps, "train.warmup",
                train.schedule_by == Counted::steps
                    ? fmt::format("at most train.steps ({})", train.steps)
                    : fmt::format("at most the run's {} steps, counted in full batches of {} tokens", train.steps,
                                  train.batch * config.data.sequence),
                show(train.warmup));
  if (train.micro_batch > 0)
    check.require(train.batch % train.micro_batch == 0, "train.micro_batch",
                  fmt::format("a divisor of train.batch ({})", train.batch), show(train.micro_batch),
                  nearby_divisors(train.batch, train.micro_batch));
}

void check_model(const Config& config, const WhereOf& where) {
  Checker check(where);
  const ModelShape& s = config.model.shape;
  check.at_least_1(s.layers, "model.layers");
  check.at_least_1(s.hidden, "model.hidden");
  check.at_least_1(s.heads, "model.heads");
  check.at_least_1(s.ffn, "model.ffn");
  check.at_least_1(s.context, "model.context");
  check_attention(s, check);
  check_foreign_fields(s, check);
  check_experts(config, where);
  check_objective(config, check);
  check_dropping_layers(config, check);
  check_length(config, check);
  check.require(config.data.sequence <= s.context, "data.sequence",
                fmt::format("at most model.context ({})", s.context), show(config.data.sequence),
                "shorten it, or raise model.context");
  check.require(s.window == 0 || config.data.sequence <= s.window, "data.sequence",
                fmt::format("at most the model's sliding_window ({})", s.window), show(config.data.sequence),
                "attention that forgets is not built in; shorten it");
}

void check_for_training(const Config& config, const WhereOf& where) {
  Checker check(where);
  check.require(!config.data.train.empty(), "data.train", find_option("data.train")->expected(), "nothing",
                "name the text to train on: data: {train: my.txt}");
  // Only of what the user wrote: a text with fewer words to learn makes a smaller tokenizer, and model.vocab follows it.
  int64_t vocab = config.model.shape.vocab, trained = config.data.tokenizer.train_vocab;
  check.require(vocab == 0 || trained <= vocab, "data.tokenizer.vocab", fmt::format("at most model.vocab ({})", vocab),
                show(trained), "lower it, or set model.vocab: auto");
}

}  // namespace megalith
