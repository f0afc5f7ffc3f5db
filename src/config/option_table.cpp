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
// "What the model predicts. causal: the next token. masked: ..."
std::string what_is_predicted() {
  std::string text = "What the model predicts.";
  for (const ObjectiveRow& row : kObjectives) text += fmt::format(" {}: {}.", row.word, row.predicted);
  return text;
}

Entry watchdog() {
  auto field = FIELD(run.watchdog);
  Entry e = count_or("auto", 0, "run.watchdog", field, between(1, kMany), "auto",
                     "With several ranks: longest time that one op (operation) or one exchange between ranks may take. If "
                     "it takes longer, the run stops and shows what every rank is doing. auto: 20 times the predicted "
                     "time of a step, at least one minute. off: no limit.");
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
           "Directory for all files that the run writes. If it has a checkpoint, the run resumes from it.")
          .in("directory")
          .free(),
      count("run.seed", FIELD(run.seed), from(0), "1",
            "Seed of the initial weights, the data order and dropout. They are the same for every layout of ranks."),
      count("run.restarts", FIELD(run.restarts), between(0, kMany), "3",
            "Largest number of restarts after crashes, for a run of several ranks.")
          .free(),
      watchdog().in("seconds").free(),
  };
}

Entry family() {
  Entry e = entry("model.arch", OptionType::choice, {}, "the preset's", "Architecture (family) of the model.");
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
           "A known model. `megalith presets` lists all presets. The other keys of the section model override its values.")
          .in("preset's name")
          .free()
          .short_form()
          .unless([](const Config& c) { return c.model.preset.empty(); }),
      text("model.from", FIELD(model.from), "none",
           "Hugging Face folder or checkpoint. It decides the shape of the model and the initial weights.")
          .in("directory")
          .unless([](const Config& c) { return c.model.from.empty(); }),
      boolean("model.new_head", FIELD(model.new_head), "false",
              "If true, the head (last layer) starts with new weights, and a head in the folder is not used. A folder "
              "without the head that the objective needs requires true.")
          .when("model.from is set", shape_comes_from_folder),
      shape(family()),
      shape(count("model.layers", FIELD(model.shape.layers), between(1, kLayers), "the preset's",
                  "Number of transformer layers.")),
      shape(count("model.hidden", FIELD(model.shape.hidden), between(1, kWidth), "the preset's",
                  "Width of the residual stream. It must be a multiple of model.heads, unless model.head_dim is given.")),
      shape(count("model.heads", FIELD(model.shape.heads), between(1, kWidth), "the preset's",
                  "Number of attention heads.")),
      shape(count("model.kv_heads", FIELD(model.shape.kv_heads), between(1, kWidth), "model.heads",
                  "llama: number of heads for keys and values (grouped-query attention). It must be a divisor of "
                  "model.heads.")),
      shape(count_or("auto", 0, "model.head_dim", FIELD(model.shape.head_size), between(1, kWidth), "auto",
                     "llama: width of a head. auto: model.hidden / model.heads.")),
      shape(count("model.ffn", FIELD(model.shape.ffn), between(1, kFfn),
                  "4 x hidden; llama: 8/3 x hidden, rounded up to a multiple of 64",
                  "Width of the feed-forward layer.")),
      shape(count_or("auto", 0, "model.vocab", FIELD(model.shape.vocab), between(1, kVocab),
                     "the preset's, else auto", "Number of rows of the embedding table. auto: the number of tokens of the "
                                                "tokenizer.")),
      shape(count("model.context", FIELD(model.shape.context), between(1, kMany),
                  "the preset's, else gpt2: 1024, llama: 2048, bert: 512", "Longest sequence that the model can process.")
                .in("tokens")),
      shape(count("model.token_types", FIELD(model.shape.token_types), between(0, kVocab), "bert: 2, else 0",
                  "bert: number of rows of the token-type table.")),
      shape(boolean("model.tied", FIELD(model.shape.tied), "the preset's, else true; llama: false",
                    "If true, the head (last layer) uses the embedding table instead of a table of its own.")),
      shape(boolean("model.qkv_bias", FIELD(model.shape.qkv_bias), "the preset's, else false",
                    "llama: if true, queries, keys and values have biases, as in Qwen2.")),
      shape(boolean("model.output_bias", FIELD(model.shape.output_bias), "false",
                    "llama: if true, the output of attention has a bias, in addition to the biases of model.qkv_bias.")),
      shape(number("model.norm_eps", FIELD(model.shape.norm_eps), above(0), "1e-5; bert: 1e-12",
                   "Small number that is added to the variance in every norm.")),
      shape(number("model.rope_theta", FIELD(model.shape.rope_theta), above(0), "10000",
                   "llama: base of the wavelengths of rotary positions.")),
      number("model.dropout.embedding", FIELD(model.shape.dropout.embedding), fraction(), "0",
             "Probability of dropout on the sum of the embeddings."),
      number("model.dropout.residual", FIELD(model.shape.dropout.residual), fraction(), "0",
             "Probability of dropout on what each sub-layer adds to the residual stream."),
      number("model.dropout.attention", FIELD(model.shape.dropout.attention), fraction(), "0",
             "Probability of dropout on the attention probabilities."),
  };
}

std::vector<Option> objective_options() {
  // Options keep views of these strings.
  static const std::string predicted = what_is_predicted();
  static const std::string masking =
      "objective is " + either(objective_words([](const ObjectiveRow& row) { return row.needs_mask; }));
  const auto masks = [](const Config& c) { return row_of(c.objective.kind).needs_mask; };
  static const std::string comparing =
      "objective is " + either(objective_words([](const ObjectiveRow& row) { return row.compares; }));
  static const std::string moving =
      "objective is " + either(objective_words([](const ObjectiveRow& row) { return row.moves_text; }));
  const auto moves = [](const Config& c) { return row_of(c.objective.kind).moves_text; };
  const auto by_columns = [](const Config& c) { return c.objective.by_columns(); };
  const auto compares = [](const Config& c) { return c.objective.compares(); };
  return {
      choice("objective.kind", FIELD(objective.kind), "causal", predicted).short_form(),
      number("objective.mask_fraction", FIELD(objective.mask_fraction), inner_fraction(), "0.15",
             "Fraction of the tokens that the model must predict (targets).")
          .when(masking, masks),
      boolean("objective.whole_words", FIELD(objective.whole_words), "false",
              "If true, either all tokens of a word are masked or none.")
          .when(masking, masks),
      number("objective.span_fraction", FIELD(objective.span_fraction), inner_fraction(), "0.15",
             "Fraction of the tokens that are in spans.")
          .when(moving, moves),
      number("objective.span_length", FIELD(objective.span_length), from(1), "3", "Mean length of a span.")
          .in("tokens")
          .when(moving, moves),
      number("objective.temperature", FIELD(objective.temperature), above(0), "0.05",
             "Similarities are divided by this. A low temperature gives more weight to the most similar negatives.")
          .when(comparing, compares),
      choice("objective.pooling", FIELD(objective.pooling), "mean",
             "The outputs that represent a sequence: their mean, the first one, or the last one.")
          .when(comparing, compares),
      choice("objective.pairs", FIELD(objective.pairs), "dropout",
             "The sequences that belong together: the same text twice with different dropout, fields of JSON lines, or "
             "neighbouring parts of a text. With dropout, every line of JSON lines is a text of its own.")
          .when(comparing, compares),
      texts("objective.columns", FIELD(objective.columns), "[anchor, positive]",
            "The two fields of JSON lines that belong together.")
          .in("field")
          .when("objective.pairs is columns", by_columns),
      texts("objective.negative_columns", FIELD(objective.negative_columns), "none",
            "More fields of JSON lines: texts that are similar to the second one but do not belong to the first.")
          .in("field")
          .when("objective.pairs is columns", by_columns),
      boolean("objective.symmetric", FIELD(objective.symmetric), "false",
              "The second sequence of a pair must find the first, too. The loss is the mean of both directions.")
          .when(comparing, compares),
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
