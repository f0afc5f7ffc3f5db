#include "config/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "config/curriculum_option.h"
#include "config/experts_options.h"
#include "config/option_types.h"
#include "config/token_dropping_options.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

// Upper ends keep products of sizes (parameters, tokens a step) within 63 bits; no real run comes near them.
constexpr double kLayers = 1e5, kWidth = 1e6, kFfn = 1e7, kVocab = 1e7, kMany = 1e9;

bool shape_comes_from_folder(const Config& c) {
  return !c.model.from.empty();
}
bool masked(const Config& c) {
  return c.objective.kind == Objective::masked;
}
bool has_betas(const Config& c) {
  return c.train.optimizer == OptimizerKind::adamw || c.train.optimizer == OptimizerKind::lion;
}
bool decays_to_an_end(const Config& c) {
  return c.train.decay == Decay::cosine || c.train.decay == Decay::linear;
}

// The one key that resolves into another: a run's length in tokens. Reads data.sequence and train.batch,
// which stand before it in the table and so are already set.
Entry tokens_as_steps() {
  Entry e = entry("train.tokens", OptionType::count, between(1, 9e18), "as train.steps says",
                  "Length of the run in tokens, in place of train.steps; rounded up to whole steps.");
  e.set = [range = e.range](Config& c, const Yaml& value) {
    auto tokens = read_count(value, range);
    int64_t a_step = c.train.batch * c.data.sequence;
    if (tokens) c.train.steps = *tokens / a_step + (*tokens % a_step != 0);
    return tokens.has_value();
  };
  e.get = [](const Config&) { return std::nullopt; };
  return e;
}

// data.tokenizer.train: bpe. The Config keeps only the size; the word is there for other kinds to come.
Entry tokenizer_to_train() {
  Entry e = entry("data.tokenizer.train", OptionType::choice, {}, "none",
                  "Trains a tokenizer of this kind on data.train before the run, in place of a path.");
  e.words = {"bpe"};
  e.set = [](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar || value.text != "bpe") return false;
    c.data.tokenizer.train_vocab = 4096;
    return true;
  };
  e.get = [](const Config&) { return "bpe"; };
  return e;
}

// One weighted entry of data.train: {path: a.txt, weight: 0.7}.
std::pair<std::string, double> read_weighted(const Yaml& entry) {
  auto refuse = [&](const std::string& got) {
    throw UserError({entry.where, "data.train", "{path: PATH, weight: NUMBER}, the number above 0", got,
                     "either every entry has a weight or none"});
  };
  if (entry.kind != Yaml::Kind::map) refuse(entry.describe());
  std::optional<std::string> path;
  std::optional<double> weight;
  for (const auto& [key, value] : entry.entries) {
    if (key == "path" && is_text(value) && !value.text.empty())
      path = value.text;
    else if (key == "weight")
      weight = read_number(value, above(0));
    else
      refuse(fmt::format("{}: {}", key, value.describe()));
    if (key == "weight" && !weight) refuse(fmt::format("weight: {}", value.describe()));
  }
  if (!path || !weight) refuse(path ? "an entry without a weight" : "an entry without a path");
  return {*path, *weight};
}

// Paths, or paths with weights: then each entry is a data set of its own, blended with the others.
Entry training_data() {
  Entry e = entry(
      "data.train", OptionType::blend, {}, "none; training needs it",
      "Training data: text, gzip or zstd text, JSON lines, token shards; names or patterns. With weights, "
      "each entry is a data set with epochs of its own, and gives its share of the samples.");
  e.set = [](Config& c, const Yaml& value) {
    const bool one = value.kind == Yaml::Kind::map;
    auto is_map = [](const Yaml& item) { return item.kind == Yaml::Kind::map; };
    if (one || std::any_of(value.items.begin(), value.items.end(), is_map)) {
      std::vector<std::string> paths;
      std::vector<double> weights;
      for (const Yaml& item : one ? std::vector{value} : value.items) {
        auto [path, weight] = read_weighted(item);
        paths.push_back(path);
        weights.push_back(weight);
      }
      c.data.train = std::move(paths);
      c.data.weights = std::move(weights);
      return true;
    }
    auto paths = read_texts(value);
    if (!paths) return false;
    c.data.train = std::move(*paths);
    c.data.weights.clear();
    return true;
  };
  e.get = [](const Config& c) {
    if (c.data.weights.empty()) return write_texts(c.data.train);
    std::vector<std::string> entries;
    for (size_t i = 0; i < c.data.train.size(); i++)
      entries.push_back(fmt::format("{{path: {}, weight: {}}}", quote_yaml(c.data.train[i]),
                                    write_number(c.data.weights[i])));
    return fmt::format("[{}]", fmt::join(entries, ", "));
  };
  return e;
}

// A size, or nothing at all.
template <class Get, class Set>
Entry size_or_none(std::string_view name, Get get, Set put, std::string_view about) {
  Entry e = entry(name, OptionType::size, from(1), "none", about);
  e.words = {"none"};
  e.set = [=](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    const std::optional<Bytes> size = parse_bytes(value.text);
    if (value.text != "none" && (!size || size->value < 1)) return false;
    put(c, size);
    return true;
  };
  e.get = [=](const Config& c) {
    const std::optional<Bytes> size = get(c);
    return size ? write_bytes(*size) : "none";
  };
  return e;
}

Entry ram() {
  Entry e =
      entry("memory.ram", OptionType::size, from(1), "auto",
            "Memory this host may use for the run, all ranks together; auto takes what the control group or "
            "the machine has, less a margin. The run fits into it or refuses to start.");
  e.words = {"auto"};
  e.set = [](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    std::optional<Bytes> size = parse_bytes(value.text);
    if (value.text != "auto" && (!size || size->value < 1)) return false;
    c.memory.ram = size;
    return true;
  };
  e.get = [](const Config& c) { return c.memory.ram ? write_bytes(*c.memory.ram) : "auto"; };
  return e;
}

// A word, or the length of chains: `4` and `every 4` mean the same.
Entry recompute() {
  Entry e = entry("memory.recompute", OptionType::count, between(1, kLayers), "auto",
                  "Which activations are computed again in the backward pass instead of being kept: none, those of the "
                  "layers' feed-forward halves (selective), those of all layers (full), those of all layers with only "
                  "every K-th layer's input kept (K, or every K); auto recomputes as little as memory allows.");
  e.words = {"auto", "none", "selective", "full"};
  e.unit = "layers";
  e.set = [range = e.range](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    for (Recompute word : {Recompute::automatic, Recompute::none, Recompute::selective, Recompute::full})
      if (value.text == name_of(word)) {
        c.memory.recompute = word;
        c.memory.recompute_every = 0;
        return true;
      }
    Yaml number = value;
    if (number.text.starts_with("every ")) number.text.erase(0, 6);
    const auto every = read_count(number, range);
    if (!every) return false;
    c.memory.recompute = Recompute::every;
    c.memory.recompute_every = *every;
    return true;
  };
  e.get = [](const Config& c) {
    return c.memory.recompute == Recompute::every ? fmt::format("{}", c.memory.recompute_every)
                                                  : std::string(name_of(c.memory.recompute));
  };
  return e;
}

Entry pipeline_schedule() {
  static constexpr std::array<std::string_view, 4> kNames{"gpipe", "1f1b", "interleaved", "zero_bubble"};
  Entry e =
      entry("parallel.schedule", OptionType::choice, {}, "1f1b", "Order of micro-batches in a pipeline.");
  e.words = {kNames.begin(), kNames.end()};
  e.set = [](Config& c, const Yaml& value) {
    if (std::find(kNames.begin(), kNames.end(), value.text) == kNames.end()) return false;
    c.parallel.schedule = value.text;
    return true;
  };
  e.get = [](const Config& c) { return c.parallel.schedule; };
  return e;
}

Entry watchdog() {
  auto field = FIELD(run.watchdog);
  Entry e = count_or("auto", 0, "run.watchdog", field, between(1, kMany), "auto",
                     "Several ranks: how long one op or exchange may take before the run is stopped with a table of what "
                     "every rank is in. auto is 20 times the predicted step, a minute at least.");
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
      text("run.dir", FIELD(run.dir), "runs/NAME, NAME being the YAML file's name",
           "Directory of everything the run leaves; the same directory again resumes it.")
          .in("directory")
          .free(),
      count("run.seed", FIELD(run.seed), from(0), "1",
            "Initial weights, data order and dropout follow from it, on every layout."),
      count("run.restarts", FIELD(run.restarts), between(0, kMany), "3",
            "How often a crashed run of several ranks is started again.")
          .free(),
      watchdog().in("seconds").free(),
  };
}

std::vector<Option> model_options() {
  auto shape = [](Entry e) { return std::move(e).unless(shape_comes_from_folder); };
  return {
      // Free to change: the shape decides, and its keys are compared one by one.
      text("model.preset", FIELD(model.preset), "none",
           "A known model (`megalith presets` lists them); the fields below override it.")
          .in("preset's name")
          .free()
          .unless([](const Config& c) { return c.model.preset.empty(); }),
      text("model.from", FIELD(model.from), "none",
           "Hugging Face folder or checkpoint whose shape and weights to start from.")
          .in("directory")
          .unless([](const Config& c) { return c.model.from.empty(); }),
      shape(choice("model.arch", FIELD(model.shape.arch), "the preset's", "Architecture.")),
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
                     "the preset's, else auto", "Rows of the embedding; auto takes the tokenizer's.")),
      shape(count("model.context", FIELD(model.shape.context), between(1, kMany),
                  "the preset's, else gpt2: 1024, llama: 2048, bert: 512", "Longest sequence.")
                .in("tokens")),
      shape(count("model.token_types", FIELD(model.shape.token_types), between(0, kVocab), "bert: 2, else 0",
                  "bert: rows of the token-type table.")),
      shape(boolean("model.tied", FIELD(model.shape.tied), "the preset's, else true; llama: false",
                    "The head multiplies with the embedding table instead of its own.")),
      shape(boolean("model.qkv_bias", FIELD(model.shape.qkv_bias), "the preset's, else false",
                    "llama: biases on queries, keys and values, as Qwen2 has them.")),
      shape(boolean("model.output_bias", FIELD(model.shape.output_bias), "false",
                    "llama: a bias on the attention's output, beside those of model.qkv_bias.")),
      shape(number("model.norm_eps", FIELD(model.shape.norm_eps), above(0), "1e-5; bert: 1e-12",
                   "Added to the variance in every norm.")),
      shape(number("model.rope_theta", FIELD(model.shape.rope_theta), above(0), "10000",
                   "llama: base of the rotary positions' wavelengths.")),
      number("model.dropout.embedding", FIELD(model.shape.dropout.embedding), fraction(), "0",
             "Dropout after the embeddings' sum."),
      number("model.dropout.residual", FIELD(model.shape.dropout.residual), fraction(), "0",
             "Dropout on what each sub-layer adds to the residual stream."),
      number("model.dropout.attention", FIELD(model.shape.dropout.attention), fraction(), "0",
             "Dropout on attention probabilities."),
  };
}

std::vector<Option> objective_options() {
  return {
      choice(
          "objective.kind", FIELD(objective.kind), "causal",
          "What is predicted: the next token, masked tokens (bert), or the next token after a prefix that is "
          "read both ways.")
          .short_form(),
      number("objective.mask_fraction", FIELD(objective.mask_fraction), inner_fraction(), "0.15",
             "Share of the tokens that become targets.")
          .when("objective is masked", masked),
      boolean("objective.whole_words", FIELD(objective.whole_words), "false",
              "Masks all pieces of a word or none.")
          .when("objective is masked", masked),
  };
}

std::vector<Option> data_options() {
  auto trains = [](const Config& c) { return c.data.tokenizer.train_vocab > 0; };
  auto has_no = [](auto has) { return [has](const Config& c) { return !has(c); }; };
  return {
      training_data().in("path"),
      // Fixed like data.train: with and without it, different texts are left for training.
      texts("data.valid", FIELD(data.valid), "none", "Validation data, of the same kinds.").in("path"),
      number("data.valid_fraction", FIELD(data.valid_fraction), fraction(), "0.01",
             "Share of the training data that is kept for validation; 0 keeps none.")
          .when("data.valid is empty", [](const Config& c) { return c.data.valid.empty(); }),
      text("data.tokenizer.path", FIELD(data.tokenizer.path), "none; with model.from, the folder's",
           "tokenizer.json, SentencePiece .model, .tiktoken ranks, WordPiece vocab.txt, or a folder with one.")
          .in("path")
          .short_form()
          .unless([](const Config& c) { return c.data.tokenizer.path.empty(); }),
      tokenizer_to_train().unless(has_no(trains)),
      count("data.tokenizer.vocab", FIELD(data.tokenizer.train_vocab), between(257, kVocab), "4096",
            "Size of the tokenizer to train: 256 bytes, special tokens and merges.")
          .in("tokens")
          .unless(has_no(trains)),
      count("data.sequence", FIELD(data.sequence), between(1, kMany), "256",
            "Length of a training sequence; at most model.context.")
          .in("tokens"),
      choice("data.attention", FIELD(data.attention), "sequence",
             "What a position may see: all of its sequence, or only its own document, with positions counted "
             "from the document's start."),
      text("data.cache", FIELD(data.cache), "the run directory", "Where text is kept as token shards.")
          .in("directory")
          .free(),
      text("data.text_field", FIELD(data.text_field), "text", "JSON lines: the field that holds the text.",
           1),
      text("data.separator", FIELD(data.separator), "none: a file is one document",
           "Text files: a line with exactly this ends a document."),
      text("data.separator_token", FIELD(data.separator_token), "none: a file is one document",
           "Text files: this text, wherever it stands, ends a document; for example <|endoftext|>.")
          .when("data.separator is empty", [](const Config& c) { return c.data.separator.empty(); }),
  };
}

std::vector<Option> curriculum_options() {
  return {curriculum_option()};
}

std::vector<Option> train_options() {
  return {
      count("train.batch", FIELD(train.batch), between(1, kMany), "32", "Sequences a step, over all ranks.")
          .in("sequences"),
      count_or(
          "auto", 0, "train.micro_batch", FIELD(train.micro_batch), between(1, kMany), "auto",
          "Sequences computed at once; a divisor of train.batch. auto chooses it from shapes and memory, "
          "once for the whole run.")
          .in("sequences"),
      count("train.steps", FIELD(train.steps), between(1, 9e18), "1000", "Length of the run.")
          .in("steps")
          .free(),
      tokens_as_steps().in("tokens").free(),
      choice("train.schedule_by", FIELD(train.schedule_by), "tokens where train.tokens is given, else steps",
             "What the run's length, warm-up, decay and validations count, in steps of full batches: steps, tokens, or "
             "tokens times the share of the layers that they went through.")
          .free(),
      count_or("auto", 0, "train.threads", FIELD(train.threads), between(1, 4096), "auto",
               "Compute threads of a rank; auto divides the host's cores among its ranks, once for the whole run."),
      choice("train.optimizer", FIELD(train.optimizer), "adamw", "Optimizer."),
      choice("train.optimizer_state", FIELD(train.optimizer_state), "fp32",
             "How the optimizer's state is kept between updates: 4, 2 or 1 bytes a number (int8 with a scale for every "
             "256), rounded at random so that small changes are not lost.")
          .when("train.optimizer is adamw, lion, or sgd with momentum (adafactor's own is small)",
                [](const Config& c) {
                  return c.train.optimizer != OptimizerKind::adafactor &&
                         (c.train.optimizer != OptimizerKind::sgd || c.train.momentum > 0);
                }),
      number("train.lr", FIELD(train.lr), above(0), "0.0003", "Learning rate after warm-up.").free(),
      number("train.min_lr", FIELD(train.min_lr), from(0), "train.lr / 10",
             "Learning rate at the end of a cosine or linear decay.")
          .free()
          .unless([](const Config& c) { return !decays_to_an_end(c); }),
      count("train.warmup", FIELD(train.warmup), between(0, 9e18), "0",
            "Steps in which the learning rate rises to train.lr.")
          .in("steps")
          .free(),
      choice("train.decay", FIELD(train.decay), "cosine", "How the learning rate falls after warm-up.")
          .free(),
      two_numbers("train.betas", FIELD(train.beta1), FIELD(train.beta2), fraction(), "[0.9, 0.95]",
                  "Decay of the gradient's first and second moment.")
          .free()
          .when("train.optimizer is adamw or lion", has_betas),
      number("train.eps", FIELD(train.eps), above(0), "1e-08", "Added to the second moment's root.")
          .free()
          .when("train.optimizer is adamw",
                [](const Config& c) { return c.train.optimizer == OptimizerKind::adamw; }),
      number("train.momentum", FIELD(train.momentum), fraction(), "0.9",
             "Share of the last update that is kept.")
          .free()
          .when("train.optimizer is sgd",
                [](const Config& c) { return c.train.optimizer == OptimizerKind::sgd; }),
      number("train.weight_decay", FIELD(train.weight_decay), from(0), "0.1",
             "Decoupled weight decay; norms and biases have none.")
          .free(),
      number("train.clip", FIELD(train.clip), from(0), "1", "Largest global gradient norm; 0 does not clip.")
          .free(),
      choice("train.precision", FIELD(train.precision), "fp32",
             "Precision of the computation; parameters and moments stay fp32."),
      count("train.eval_every", FIELD(train.eval_every), between(0, 9e18), "200",
            "Steps between validations, counted as train.schedule_by says; 0 validates only at the end.")
          .in("steps")
          .free(),
      count("train.eval_batches", FIELD(train.eval_batches), between(0, kMany), "20",
            "Batches of a validation; 0 takes all validation data.")
          .in("batches")
          .free(),
      count("train.log_every", FIELD(train.log_every), between(1, kMany), "1",
            "Steps between log lines where there is no terminal; metrics.jsonl has every step.")
          .in("steps")
          .free(),
      count("train.max_bad_steps", FIELD(train.max_bad_steps), between(1, kMany), "10",
            "Skipped steps in a row (loss or gradient not finite) before the run stops.")
          .in("steps")
          .free(),
      count("train.sample_tokens", FIELD(train.sample_tokens), between(0, kMany), "0",
            "Length of a text sample generated with each validation; 0 generates none.")
          .in("tokens")
          .free(),
      text("train.sample_prompt", FIELD(train.sample_prompt), "none", "How the sample begins.")
          .free()
          .when("train.sample_tokens is above 0", [](const Config& c) { return c.train.sample_tokens > 0; }),
  };
}

std::vector<Option> layout_options() {
  auto pipelined = [](const Config& c) { return c.parallel.pipeline > 1; };
  auto cut_sequences = [](const Config& c) { return c.parallel.context > 1; };
  return {
      count_or("auto", 0, "parallel.data", FIELD(parallel.data), between(1, kWidth), "auto",
               "Copies of the model, each with its share of the batch.")
          .in("ranks")
          .free(),
      count("parallel.tensor", FIELD(parallel.tensor), between(1, kWidth), "1", "Ranks that share each matrix.")
          .in("ranks")
          .free(),
      count("parallel.pipeline", FIELD(parallel.pipeline), between(1, kWidth), "1", "Stages of the pipeline.")
          .in("stages")
          .free(),
      count("parallel.context", FIELD(parallel.context), between(1, kWidth), "1", "Ranks that share each sequence.")
          .in("ranks")
          .free(),
      choice("parallel.context_form", FIELD(parallel.context_form), "ring",
             "How they share attention: keys and values go round, or each rank takes some heads of whole sequences "
             "(their number must be a multiple of parallel.context).")
          .free()
          .when("parallel.context is above 1", cut_sequences),
      count("parallel.expert", FIELD(parallel.expert), between(1, kWidth), "1",
            "Ranks of the data axis that the experts are spread over; to other layers they are copies.")
          .in("ranks")
          .free(),
      count("parallel.zero", FIELD(parallel.zero), between(0, 3), "0",
            "ZeRO stage: 1 shards moments, 2 gradients too, 3 parameters too.")
          .free(),
      pipeline_schedule().free().when("parallel.pipeline is above 1", pipelined),
      count("parallel.interleave", FIELD(parallel.interleave), between(1, kLayers), "1", "Model parts a stage holds.")
          .free()
          .when("parallel.pipeline is above 1", pipelined),
      ram().free(),
      text("memory.spill", FIELD(memory.spill), "none: nothing is spilled",
           "Directory on a fast disk for what does not fit into memory: optimizer state first, then parameters and "
           "gradients. Scratch, this run's alone; nothing is left there.")
          .in("directory")
          .free(),
      count_or("auto", 0, "memory.window", FIELD(memory.window), between(1, kLayers), "auto",
               "How many turns ahead a block that lives on disk is brought in: one computes, the others come. auto is the "
               "smallest for which the predicted step is as short as any.")
          .in("blocks")
          .free()
          .when("memory.spill or memory.device is given",
                [](const Config& c) { return !c.memory.spill.empty() || c.memory.device; }),
      size_or_none(
          "memory.device", [](const Config& c) { return c.memory.device; },
          [](Config& c, std::optional<Bytes> size) { c.memory.device = size; },
          "Memory of the device on which blocks are computed. Parameters, gradients and activations are there while "
          "they are used; the state is in this host's memory, or on disk with memory.spill, where updates are made. "
          "There is no GPU in this version: with memory.simulated_device.bandwidth it is a simulated device, whose "
          "memory is this host's, besides memory.ram.")
          .free(),
      size_or_none(
          "memory.simulated_device.bandwidth",
          [](const Config& c) {
            return c.memory.device_bandwidth > 0 ? std::optional(Bytes(c.memory.device_bandwidth)) : std::nullopt;
          },
          [](Config& c, std::optional<Bytes> size) { c.memory.device_bandwidth = size ? size->value : 0; },
          "How fast a simulated device is reached, each way: copies take as long as they would take there. Blocks are "
          "computed by this machine; no number differs from a run without a device.")
          .in("bytes a second")
          .free()
          .when("memory.device is given", [](const Config& c) { return c.memory.device.has_value(); }),
      recompute().free(),
      choice("memory.activations", FIELD(train.activations), "fp32",
             "How activations are kept from the forward to the backward pass: 4, 2 or 1 bytes a number (int8 with a scale "
             "for every 128). Losses of a step stay exact, gradients take the rounding.")
          .when("train.precision is fp32 (16-bit activations are kept as they are) and memory.recompute is not selective",
                [](const Config& c) {
                  return c.train.precision == Precision::fp32 && c.memory.recompute != Recompute::selective;
                }),
      count_or("never", -1, "checkpoint.every", FIELD(checkpoint.every), between(0, 9e18), "200",
               "Steps between checkpoints; 0 saves only at the end.")
          .in("steps")
          .free(),
      count("checkpoint.keep", FIELD(checkpoint.keep), between(1, kMany), "2", "Checkpoints kept, the newest ones.").free(),
  };
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
