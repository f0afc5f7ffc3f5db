#include "config/from_deepspeed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/join.h"
#include "base/json.h"
#include "config/json_object.h"
#include "config/option_types.h"
#include "config/parse.h"
#include "config/yaml.h"

namespace megalith {
namespace {

using Json = JsonObject::Json;
using Kind = JsonObject::Kind;

// Metrics that `megalith analyze` computes from tokens alone; other metrics need a file. Copied from
// data/sample_metrics.h, which this folder must not include.
constexpr std::array<std::string_view, 4> kOurMetrics{"length", "rarity", "length_rarity", "compression"};

// Range and type of a metric's difficulties.
struct Scale {
  Range values;
  bool whole = false;
  double read(JsonObject& tree, const std::string& key) const {
    return whole ? static_cast<double>(tree.whole(key, values)) : tree.number(key, values);
  }
};

const Scale& lengths() {
  static const Scale scale{between(1, kMany), true};
  return scale;
}

class Translator {
 public:
  Translator(const Json& json, const std::string& where) : root_(json, where, ""), where_(where) {}

  FromDeepSpeed translate() {
    if (root_.has("data_efficiency")) efficiency(root_.object("data_efficiency"));
    if (root_.has("curriculum_learning")) legacy(root_.object("curriculum_learning"));
    if (const auto other = root_.unread(); !other.empty())
      note("ignored, because they are not about data efficiency: {}", some_of(other));
    settle_dropping();
    if (longest_ > 0) note("data.sequence must be {} or more", longest_);
    if (seed_) out_.yaml += fmt::format("run: {{seed: {}}}\n", *seed_);
    if (!curriculum_.empty()) out_.yaml += fmt::format("curriculum:\n{}", join(curriculum_, ""));
    out_.yaml += dropping_ + train_;
    if (out_.yaml.empty()) note("nothing to translate: nothing is enabled");
    else check();
    return std::move(out_);
  }

 private:
  struct Unneeded {
    const char* key;
    Kind kind;
    const char* reason;
  };

  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    out_.notes.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  bool enabled(JsonObject& tree) {
    if (tree.flag("enabled")) return true;
    note("{} is not enabled: ignored", tree.path(""));
    return false;
  }
  // Notes keys that we do not need, with the reason.
  void unneeded(JsonObject& tree, const std::vector<Unneeded>& keys) {
    for (auto [key, kind, reason] : keys) {
      if (tree.has(key)) note("{}: {}", tree.path(key), reason);
      tree.skip(key, kind);
    }
  }
  // Called after reading an object: notes the keys that were not read.
  void close(const JsonObject& tree) {
    for (const std::string& path : tree.unread()) note("{}: unknown key, ignored", path);
  }

  void efficiency(JsonObject tree) {
    if (!enabled(tree)) return;
    if (tree.has("seed")) {
      seed_ = tree.whole("seed", between(0, 9e18));
      note("{}: translated to run.seed, which also determines initial weights and dropout", tree.path("seed"));
    }
    if (tree.has("data_sampling")) sampling(tree.object("data_sampling"));
    if (tree.has("data_routing")) routing(tree.object("data_routing"));
    close(tree);
  }

  void sampling(JsonObject tree) {
    if (!enabled(tree)) return;
    unneeded(tree, {{"num_epochs", Kind::number, "not translated: train.steps or train.tokens set the length of the run"},
                    {"num_workers", Kind::number, "not needed: batches are read without worker processes"},
                    {"pin_memory", Kind::boolean, "not needed: batches are not copied"},
                    {"dynamic_batching", Kind::object, "not translated: use hold: tokens"}});
    if (tree.has("curriculum_learning")) metrics(tree.object("curriculum_learning"));
    close(tree);
  }

  void metrics(JsonObject tree) {
    if (!enabled(tree)) return;
    unneeded(tree, {{"data_cluster_path", Kind::text, "not needed: admitted samples are not stored in files"}});
    if (!tree.has("curriculum_metrics")) tree.refuse("curriculum_metrics", "an object with metrics", "nothing");
    JsonObject all = tree.object("curriculum_metrics");
    for (const std::string& name : all.keys()) {
      if (name.empty() || name.find('\0') != std::string::npos)
        all.refuse("", "metric names without NUL that are not empty", quote_yaml(name));
      add_metric(name, all.object(name));
    }
    close(tree);
  }

  void legacy(JsonObject tree) {
    if (!enabled(tree)) return;
    const std::string type = tree.text("curriculum_type");
    if (!type.empty() && type != "seqlen") tree.refuse("curriculum_type", "seqlen", quote_yaml(type));
    add_length("truncate", tree);
    close(tree);
  }

  void add_metric(const std::string& name, JsonObject tree) {
    const std::string difficulty = tree.text("difficulty_type");
    if (!difficulty.empty() && difficulty != "value" && difficulty != "percentile")
      tree.refuse("difficulty_type", "value or percentile", quote_yaml(difficulty));
    const std::string apply = application(name, tree);
    if (apply == "filter") {
      if (difficulty.empty()) note("{}: missing, value is assumed", tree.path("difficulty_type"));
      add_filter(name, tree, difficulty == "percentile");
    } else {
      if (difficulty == "percentile")
        tree.refuse("difficulty_type", "value (in tokens), because clustering_type is single_cluster", difficulty);
      unneeded(tree, {{"index_to_sample_path", Kind::text, "not needed: lengths have no index"},
                      {"index_to_metric_path", Kind::text, "not needed: lengths have no index"}});
      add_length(apply, tree);
    }
    close(tree);
  }

  // Returns the value for `apply:`. A metric in DeepSpeed filters samples by clusters. With a single cluster, it admits
  // every sample. Its name (seqlen_truncate, seqlen_reshape) then tells the training script how to use its value.
  std::string application(const std::string& name, JsonObject& tree) {
    const bool named = name == "seqlen" || name.starts_with("seqlen_");
    std::string type = tree.text("clustering_type");
    if (type.empty()) {
      const bool indexed = tree.has("index_to_sample_path") || tree.has("index_to_metric_path");
      type = named && !indexed ? "single_cluster" : "schedule_based";
      note("{}: missing, {} is assumed", tree.path("clustering_type"), type);
    }
    const bool single = type == "single_cluster";
    if (single && !named)
      tree.refuse("clustering_type", "schedule_based unless the metric is seqlen_truncate or seqlen_reshape", type,
                  "use schedule_based: what a training script does with another metric cannot be translated");
    const std::string apply = !single ? "filter" : name.find("reshape") != std::string::npos ? "reshape" : "truncate";
    note("{}: {} is translated to apply: {}", tree.path("clustering_type"), quote_yaml(type), apply);
    return apply;
  }

  void add_length(const std::string& apply, JsonObject& tree) {
    if (std::exchange(changes_length_, true))
      tree.refuse("", "at most one metric that changes the length of sequences", "a second one", "disable one of them");
    curriculum_.push_back(fmt::format("  - {{metric: length, apply: {}, {}}}\n", apply, schedule(tree, lengths())));
  }

  void add_filter(const std::string& name, JsonObject& tree, bool percentile) {
    const std::string metric = name == "vocabularyrarity" || name == "voc" ? "rarity" : name;
    std::string entry = fmt::format("  - {{metric: {}, apply: filter, ", quote_yaml(metric));
    if (percentile) entry += "unit: percentile, ";
    const std::string file = values_file(tree);
    if (file.empty()) note_no_file(metric, tree, percentile);
    else entry += fmt::format("file: {}, ", quote_yaml(file));
    const double parts = percentile && tree.has("max_difficulty") ? tree.number("max_difficulty", {}) : 100;
    if (parts != 100)
      tree.refuse("max_difficulty", "100, because difficulty_type is percentile", write_number(parts),
                  "scale the difficulties to 100: DeepSpeed divides the samples into max_difficulty parts");
    const Scale scale{percentile ? Range{.low = 0, .high = 100, .open_low = true} : Range{}};
    curriculum_.push_back(entry + schedule(tree, scale) + "}\n");
  }

  // Returns the value for `file:`, or an empty text. We read PREFIX_index_to_metric and PREFIX_index_to_sample next to
  // it. DeepSpeed's config names both files. The second one is often ..._percentile_merged, which is enough for
  // DeepSpeed's percentiles but has no rows for single values.
  std::string values_file(JsonObject& tree) {
    const std::string to_metric = "index_to_metric", to_sample = "index_to_sample";
    const std::string values = tree.text("index_to_metric_path"), samples = tree.text("index_to_sample_path");
    const size_t at = values.empty() ? samples.rfind(to_sample) : values.rfind(to_metric);
    if (values.empty() && at == std::string::npos) return "";
    if (!values.empty() && !values.ends_with(to_metric))
      tree.refuse("index_to_metric_path", "a path that ends with " + to_metric, quote_yaml(values),
                  "rename the files to NAME_index_to_metric and NAME_index_to_sample");
    const std::string prefix = (values.empty() ? samples : values).substr(0, at);
    note("{}: translated to file: {}; {} is read as well{}",
         tree.path(values.empty() ? "index_to_sample_path" : "index_to_metric_path"), quote_yaml(prefix + to_metric),
         quote_yaml(prefix + to_sample),
         samples.empty() || samples == prefix + to_sample ? "" : ", not " + quote_yaml(samples));
    return prefix + to_metric;
  }

  void note_no_file(const std::string& metric, const JsonObject& tree, bool percentile) {
    if (metric == "loss")
      tree.refuse("index_to_metric_path", "a path", "nothing", "give the file with the values: a loss depends on a model");
    if (std::find(kOurMetrics.begin(), kOurMetrics.end(), metric) == kOurMetrics.end())
      note("{}: no index_to_metric_path, and {} is not a built-in metric: add file: with one number per "
           "sample", tree.path(""),
           quote_yaml(metric));
    else if (!percentile)
      note("{}: no index_to_metric_path: values come from `megalith analyze --metric {}`, whose scale may differ",
           tree.path(""), metric);
  }

  std::string schedule(JsonObject& tree, const Scale& scale) {
    const std::string type = tree.text("schedule_type");
    JsonObject settings = tree.object("schedule_config");
    std::string text;
    if (type == "fixed_discrete") text = table(tree, settings, scale);
    else if (type == "fixed_linear" || type == "fixed_root") text = formula(tree, settings, scale, type == "fixed_root");
    else
      tree.refuse("schedule_type", "fixed_linear, fixed_root or fixed_discrete", type.empty() ? "nothing" : quote_yaml(type),
                  type == "custom" ? "write your function's values as a table: pacing: [[0, VALUE], [BEGIN, VALUE]]" : "");
    close(settings);
    return text;
  }

  std::string table(JsonObject& tree, JsonObject& settings, const Scale& scale) {
    const std::vector<double> values = settings.numbers("difficulty", scale.values, scale.whole);
    const std::vector<double> ends = settings.numbers("max_step", between(0, kLongest - 1), true);
    if (values.size() != ends.size() + 1)
      settings.refuse("difficulty", fmt::format("one value more than max_step ({} values)", ends.size()),
                      fmt::format("{}", values.size()));
    std::vector<std::string> points{fmt::format("[0, {}]", write_number(values[0]))};
    for (size_t i = 1; i < values.size(); i++) {
      if (values[i] < values[i - 1])
        settings.refuse_item("difficulty", i, fmt::format("at least the value before it ({})", write_number(values[i - 1])),
                             write_number(values[i]));
      if (i > 1 && ends[i - 1] <= ends[i - 2])
        settings.refuse_item("max_step", i - 1, fmt::format("more than the value before it ({})", write_number(ends[i - 2])),
                             write_number(ends[i - 1]));
      if (ends[i - 1] == 0) {
        note("{}: DeepSpeed's first step is step 1: {} is never used", settings.path("max_step"), write_number(values[0]));
        points.clear();
      }
      // A difficulty applies up to and including its max_step. DeepSpeed's first step is step 1; ours is step 0.
      points.push_back(fmt::format("[{}, {}]", static_cast<int64_t>(ends[i - 1]), write_number(values[i])));
    }
    compare_ends(tree, values, scale);
    if (scale.whole) longest_ = std::max(longest_, static_cast<int64_t>(values.back()));
    return fmt::format("over: steps, pacing: [{}]", join(points, ", "));
  }

  // DeepSpeed also has min_difficulty and max_difficulty next to a table. It ignores the rest of the table once a
  // difficulty reaches max_difficulty.
  void compare_ends(JsonObject& tree, const std::vector<double>& values, const Scale& scale) {
    const double first = tree.has("min_difficulty") ? scale.read(tree, "min_difficulty") : values.front();
    const double last = tree.has("max_difficulty") ? scale.read(tree, "max_difficulty") : values.back();
    if (last < values.back())
      tree.refuse("max_difficulty", fmt::format(
                  "the last value of schedule_config.difficulty ({})", write_number(values.back())),
                  write_number(last), "remove the values after it: DeepSpeed ends the table at max_difficulty");
    if (first >= last && first != values.front())
      tree.refuse("min_difficulty",
                  fmt::format("the first value of schedule_config.difficulty ({})", write_number(values.front())),
                  write_number(first),
                  "correct it: DeepSpeed ignores the table if min_difficulty is not below max_difficulty");
    if (first != values.front() || last != values.back())
      note("{}: the table begins at {} and ends at {}; min_difficulty and max_difficulty are ignored", tree.path(""),
           write_number(values.front()), write_number(values.back()));
  }

  std::string formula(JsonObject& tree, JsonObject& settings, const Scale& scale, bool root) {
    const double from = scale.read(tree, "min_difficulty"), to = scale.read(tree, "max_difficulty");
    if (from > to)
      tree.refuse("max_difficulty", fmt::format("at least min_difficulty ({})", write_number(from)), write_number(to));
    const Scale steps{scale.whole ? between(1, kMany) : above(0), scale.whole};
    const double step = steps.read(settings, "difficulty_step");
    const int64_t over = settings.whole("total_curriculum_step", between(1, kLongest));
    if (from < to)
      note("{}: DeepSpeed's first step is step 1, ours is step 0: every value after the first begins one step later here",
           tree.path("schedule_type"));
    note_multiples(tree, {"min_difficulty", "max_difficulty", "difficulty_step"}, from, to, step);
    if (step != std::floor(step))
      note("{}: DeepSpeed rounds down to whole numbers first; we round only to multiples of "
           "{}", settings.path("difficulty_step"),
           write_number(step));
    if (scale.whole) longest_ = std::max(longest_, static_cast<int64_t>(to));
    std::string text = fmt::format("from: {}, to: {}, step: {}, over: {} steps", write_number(from), write_number(to),
                                   write_number(step), over);
    if (root) text += fmt::format(", pacing: root {}", write_number(settings.number("root_degree", between(0.01, 100))));
    return text;
  }

  void note_multiples(const JsonObject& tree, const std::array<const char*, 3>& names, double from, double to, double step) {
    if (std::fmod(from, step) != 0)
      note("{}: {} is not a multiple of {} {}; our schedule begins with it anyway", tree.path(names[0]), write_number(from),
           names[2], write_number(step));
    if (std::fmod(to, step) != 0)
      note("{}: {} is not a multiple of {} {}; our schedule ends with it anyway", tree.path(names[1]), write_number(to),
           names[2], write_number(step));
  }

  void routing(JsonObject tree) {
    if (!enabled(tree)) return;
    if (tree.has("random_ltd")) token_dropping(tree.object("random_ltd"));
    close(tree);
  }

  void token_dropping(JsonObject tree) {
    if (!enabled(tree)) return;
    if (tree.has("total_layer_num")) model_layers_ = tree.whole("total_layer_num", between(1, kLayers));
    unneeded(tree, {{"total_layer_num", Kind::number, "not needed: the model defines it"},
                    {"model_mask_name", Kind::text, "not needed: masks have no names"},
                    {"model_type", Kind::text, "not needed: the model defines it"},
                    {"micro_batch_size", Kind::number, "not needed: any size works"},
                    {"global_batch_size", Kind::number, "not translated: set train.batch"},
                    {"hidden_state_order", Kind::text, "not needed: the model defines it"}});
    const std::string kept = kept_tokens(tree.object("random_ltd_schedule"));
    dropping_ = fmt::format("token_dropping: {{{}{}}}\n", kept, layers(tree));
    if (tree.has("layer_token_lr_schedule")) layer_tokens(tree.object("layer_token_lr_schedule"));
    close(tree);
  }

  std::string kept_tokens(JsonObject tree) {
    const std::string type = tree.text("schedule_type");
    if (!type.empty() && type != "fixed_linear") tree.refuse("schedule_type", "fixed_linear", quote_yaml(type));
    const Range tokens = between(1, kMany);
    const int64_t from = tree.whole("min_value", tokens), to = tree.whole("max_value", tokens);
    if (from > to) tree.refuse("max_value", fmt::format("at least min_value ({})", from), fmt::format("{}", to));
    JsonObject settings = tree.object("schedule_config");
    const int64_t step = settings.whole("seq_per_step", tokens);
    const int64_t over = settings.whole("require_steps", between(1, kLongest));
    note_multiples(tree, {"min_value", "max_value", "seq_per_step"}, static_cast<double>(from), static_cast<double>(to),
                   static_cast<double>(step));
    kept_from_ = from;
    kept_to_ = to;
    close(settings);
    close(tree);
    return fmt::format("from: {}, to: {}, step: {}, over: {} steps", from, to, step, over);
  }

  // Called when curriculum and token dropping are both known. No token is dropped if sequences are never longer than
  // the kept tokens.
  void settle_dropping() {
    if (dropping_.empty()) return;
    if (changes_length_ && kept_from_ >= longest_) {
      note("random_ltd: ignored, because it keeps at least {} tokens and no sequence has more than {}",
           kept_from_, longest_);
      dropping_.clear();
      return;
    }
    longest_ = std::max({longest_, kept_to_, kept_from_ + 1});
  }

  std::string layers(JsonObject& tree) {
    const std::string ids = "random_ltd_layer_id", number = "random_ltd_layer_num";
    const int64_t all = model_layers_.value_or(static_cast<int64_t>(kLayers));
    std::optional<int64_t> said;
    if (tree.has(number)) said = tree.whole(number, between(1, static_cast<double>(all)));
    if (!tree.has(ids)) {
      if (all < 3) tree.refuse(ids, "a list of layers", "nothing", "list the layers: this model has no middle layers");
      note("{}: missing, all layers except the first and the last drop tokens", tree.path(ids));
      return "";
    }
    std::vector<double> list = tree.numbers(ids, between(0, static_cast<double>(all - 1)), /*whole=*/true);
    if (list.empty()) tree.refuse(ids, "at least one layer", "an empty list",
                                  "list a layer, or set random_ltd.enabled: false");
    std::sort(list.begin(), list.end());
    if (auto twice = std::adjacent_find(list.begin(), list.end()); twice != list.end())
      tree.refuse(ids, "each layer once", fmt::format("{} twice", write_number(*twice)));
    if (said && *said != static_cast<int64_t>(list.size()))
      note("{}: {}, but {} layers are listed; the list is used", tree.path(number), *said, list.size());
    else if (said) note("{}: not needed: the list of layers defines it", tree.path(number));
    last_layer_ = static_cast<int64_t>(list.back());
    return fmt::format(", layers: [{}]", join(std::vector<int64_t>(list.begin(), list.end()), ", "));
  }

  // DeepSpeed counts a token once per layer that it passes. We count it as the fraction of the layers that it passes.
  void layer_tokens(JsonObject tree) {
    if (!enabled(tree)) return;
    const std::string total = "total_layer_tokens", warmup = "warmup_layer_tokens";
    std::string length;
    if (tree.has(total)) {
      const int64_t sum = tree.whole(total, between(1, kLongest));
      if (model_layers_) {
        const int64_t tokens = (sum + *model_layers_ - 1) / *model_layers_;
        length = fmt::format("tokens: {}, ", tokens);
        note("{}: {} divided by {} layers is translated to train.tokens: {}, which replaces train.steps", tree.path(total),
             sum, *model_layers_, tokens);
      } else {
        note("{}: not translated, because total_layer_num is missing: set train.tokens to {} divided by the number of "
             "layers",
             tree.path(total), sum);
      }
    }
    if (tree.has(warmup))
      note("{}: not translated, because train.warmup counts steps of full batches: set it to {} divided by the number of "
           "layers, train.batch and data.sequence",
           tree.path(warmup), tree.whole(warmup, between(0, kLongest)));
    unneeded(tree, {{"warmup_type", Kind::text, "not needed: our warm-up is linear"}});
    train_ = fmt::format("train: {{{}schedule_by: layer_tokens}}\n", length);
    close(tree);
  }

  // Checks the result with the parser that will read it. Adds a model that is large enough for all settings.
  void check() const {
    const int64_t sequence = std::max<int64_t>(longest_, 1), layers = std::max<int64_t>(last_layer_ + 1, 3);
    const std::string room = fmt::format(
        "model: {{arch: gpt2, layers: {}, hidden: 8, heads: 2, context: {}}}\ndata: {{sequence: {}}}\n",
        model_layers_.value_or(layers), sequence, sequence);
    parse_config(out_.yaml + room, where_ + " as translated", "run");
  }

  JsonObject root_;
  const std::string& where_;
  FromDeepSpeed out_;
  std::vector<std::string> curriculum_;
  std::string dropping_, train_;
  std::optional<int64_t> seed_, model_layers_;
  bool changes_length_ = false;  // true if an entry of the curriculum does
  int64_t last_layer_ = 0;       // last layer that drops tokens, if layers are listed
  int64_t longest_ = 0;          // longest sequence in any setting, in tokens
  int64_t kept_from_ = 0, kept_to_ = 0;  // tokens of a sequence that dropping layers keep, at first and at the end
};

// Throws UserError with the line at which the text stops being JSON.
[[noreturn]] void refuse_text(std::string_view text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw UserError({where, "", "JSON", "an empty file", ""});
  std::string place = where;
  try {
    Json read = parse_ordered_json(text);
  } catch (const Json::parse_error& error) {
    place += fmt::format(":{}", 1 + std::ranges::count(text.substr(0, std::min(error.byte, text.size())), '\n'));
  } catch (const Json::exception&) {  // a number that fits no type
  }
  throw UserError({place, "", "JSON", "something else", "look for a missing or extra comma or quote"});
}

}  // namespace

FromDeepSpeed from_deepspeed(std::string_view text, const std::string& where) {
  const Json root = try_parse_ordered_json(text, where);
  if (root.is_discarded()) refuse_text(text, where);
  return Translator(root, where).translate();
}

}  // namespace megalith
