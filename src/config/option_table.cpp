#include "config/options.h"

#include "base/either.h"
#include "config/curriculum_option.h"
#include "config/data_options.h"
#include "config/experts_options.h"
#include "config/layout_options.h"
#include "config/option_types.h"
#include "config/token_dropping_options.h"
#include "config/train_options.h"
#include "families/registry.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

bool shape_comes_from_folder(const Config& c) {
  return !c.model.from.empty();
}
// "What is predicted: the next token, masked tokens (bert), or ..."
std::string what_is_predicted() {
  std::string text = "What is predicted: ";
  for (const ObjectiveRow& row : kObjectives) {
    if (row.kind != kObjectives.front().kind) text += row.kind == kObjectives.back().kind ? ", or " : ", ";
    text += row.predicted;
  }
  return text + ".";
}

Entry watchdog() {
  auto field = FIELD(run.watchdog);
  Entry e = count_or("auto", 0, "run.watchdog", field, between(1, kMany), "auto",
                     "With several ranks: longest time of one op or exchange. After it, the run stops and shows what every "
                     "rank is doing. auto: 20 times the predicted step, at least one minute.");
  e.words.push_back("off");
  e.set = [plain = std::move(e.set)](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar || value.text != "off") return plain(c, value);
    c.run.watchdog = -1;
    return true;
  };
  e.get = [plain = std::move(e.get)](const Config& c) {
    return c.run.watchdog < 0 ? std::optional<std::string>("off") : plain(c);
  };
  return e;
}

std::vector<Option> run_options() {
  return {
      text("run.dir", FIELD(run.dir), "runs/NAME, where NAME is the name of the YAML file",
           "Run directory: all files that the run writes. If it has a checkpoint, the run resumes from it.")
          .in("directory")
          .free(),
      count("run.seed", FIELD(run.seed), from(0), "1",
            "Seed of the initial weights, data order and dropout. The layout does not change them."),
      count("run.restarts", FIELD(run.restarts), between(0, kMany), "3",
            "How often a run of several ranks is restarted after a crash.")
          .free(),
      watchdog().in("seconds").free(),
  };
}

Entry family() {
  Entry e = entry("model.arch", OptionType::choice, {}, "the preset's", "Architecture.");
  e.registered_words = family_names;
  e.set = [](Config& c, const Yaml& value) {
    const Family* found = value.kind == Yaml::Kind::scalar ? find_family(value.text) : nullptr;
    if (found) c.model.shape.family = found;
    return found != nullptr;
  };
  e.get = [](const Config& c) -> std::optional<std::string> {
    if (!c.model.shape.family) return std::nullopt;
    return std::string(c.model.shape.family->name);
  };
  return e;
}

std::vector<Option> model_options() {
  auto shape = [](Entry e) { return std::move(e).unless(shape_comes_from_folder); };
  return {
      // May change on resume: only the shape matters, and its keys are compared one by one.
      text("model.preset", FIELD(model.preset), "none",
           "A known model (`megalith presets` lists them); the keys below override its values.")
          .in("preset's name")
          .free()
          .short_form()
          .unless([](const Config& c) { return c.model.preset.empty(); }),
      text("model.from", FIELD(model.from), "none",
           "Hugging Face folder or checkpoint that gives the shape and the initial weights.")
          .in("directory")
          .unless([](const Config& c) { return c.model.from.empty(); }),
      boolean("model.new_head", FIELD(model.new_head), "false",
              "Starts the head from new weights, for folders without the head of the objective. A head in the folder is not "
              "used.")
          .when("model.from is set", shape_comes_from_folder),
      shape(family()),
      shape(count("model.layers", FIELD(model.shape.layers), between(1, kLayers), "the preset's",
                  "Transformer layers.")),
      shape(count("model.hidden", FIELD(model.shape.hidden), between(1, kWidth), "the preset's",
                  "Width of the residual stream; a multiple of model.heads unless model.head_dim is given.")),
      shape(count("model.heads", FIELD(model.shape.heads), between(1, kWidth), "the preset's",
                  "Attention heads.")),
      shape(count("model.kv_heads", FIELD(model.shape.kv_heads), between(1, kWidth), "model.heads",
                  "llama: heads of keys and values (grouped-query attention); a divisor of model.heads.")),
      shape(count_or("auto", 0, "model.head_dim", FIELD(model.shape.head_size), between(1, kWidth), "auto",
                     "llama: width of a head; auto is model.hidden / model.heads.")),
      shape(count("model.ffn", FIELD(model.shape.ffn), between(1, kFfn),
                  "4 x hidden; llama: 8/3 x hidden, rounded up to a multiple of 64",
                  "Width of the feed-forward layer.")),
      shape(count_or("auto", 0, "model.vocab", FIELD(model.shape.vocab), between(1, kVocab),
                     "the preset's, else auto", "Rows of the embedding table; auto is the tokenizer's size.")),
      shape(count("model.context", FIELD(model.shape.context), between(1, kMany),
                  "the preset's, else gpt2: 1024, llama: 2048, bert: 512", "Longest sequence.")
                .in("tokens")),
      shape(count("model.token_types", FIELD(model.shape.token_types), between(0, kVocab), "bert: 2, else 0",
                  "bert: rows of the token-type table.")),
      shape(boolean("model.tied", FIELD(model.shape.tied), "the preset's, else true; llama: false",
                    "The head uses the embedding table instead of its own.")),
      shape(boolean("model.qkv_bias", FIELD(model.shape.qkv_bias), "the preset's, else false",
                    "llama: biases on queries, keys and values, as Qwen2 has them.")),
      shape(boolean("model.output_bias", FIELD(model.shape.output_bias), "false",
                    "llama: a bias on the attention's output, in addition to those of model.qkv_bias.")),
      shape(number("model.norm_eps", FIELD(model.shape.norm_eps), above(0), "1e-5; bert: 1e-12",
                   "Added to the variance in every norm.")),
      shape(number("model.rope_theta", FIELD(model.shape.rope_theta), above(0), "10000",
                   "llama: base of the rotary positions' wavelengths.")),
      number("model.dropout.embedding", FIELD(model.shape.dropout.embedding), fraction(), "0",
             "Dropout on the sum of the embeddings."),
      number("model.dropout.residual", FIELD(model.shape.dropout.residual), fraction(), "0",
             "Dropout on what each sub-layer adds to the residual stream."),
      number("model.dropout.attention", FIELD(model.shape.dropout.attention), fraction(), "0",
             "Dropout on attention probabilities."),
  };
}

std::vector<Option> objective_options() {
  // Options keep views of these strings.
  static const std::string predicted = what_is_predicted();
  static const std::string few =
      "objective is " + either(objective_words([](const ObjectiveRow& row) { return row.few_targets; }));
  const auto few_targets = [](const Config& c) { return row_of(c.objective.kind).few_targets; };
  return {
      choice("objective.kind", FIELD(objective.kind), "causal", predicted).short_form(),
      number("objective.mask_fraction", FIELD(objective.mask_fraction), inner_fraction(), "0.15",
             "Fraction of the tokens that become targets.")
          .when(few, few_targets),
      boolean("objective.whole_words", FIELD(objective.whole_words), "false",
              "Mask all tokens of a word or none.")
          .when(few, few_targets),
  };
}

std::vector<Option> curriculum_options() {
  return {curriculum_option()};
}

#undef FIELD

std::vector<Option> all_options() {
  std::vector<Option> all;
  for (auto section : {run_options, model_options, experts_options, objective_options, data_options, curriculum_options,
                       token_dropping_options, train_options, layout_options})
    for (Option& option : section()) all.push_back(std::move(option));
  return all;
}

}  // namespace

std::span<const Option> options() {
  static const std::vector<Option> table = all_options();
  return table;
}

}  // namespace megalith
