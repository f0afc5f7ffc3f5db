#include "config/from_deepspeed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "config/yaml.h"

namespace megalith {
namespace {

using Json = nlohmann::ordered_json;

class Translator {
 public:
  Translator(const Json& root, const std::string& where) : root_(root), where_(where) {}

  FromDeepSpeed translate() {
    if (!root_.is_object()) refuse("", "a JSON object", "something else");
    for (const auto& [key, value] : root_.items()) {
      if (key == "data_efficiency") efficiency(value);
      else if (key == "curriculum_learning") legacy(value);
      else other_.push_back(key);
    }
    if (!other_.empty()) note("left out, as it is not about data efficiency: {}", fmt::join(other_, ", "));
    if (!curriculum_.empty()) out_.yaml += fmt::format("curriculum:\n{}", fmt::join(curriculum_, ""));
    out_.yaml += dropping_ + train_;
    if (seed_) out_.yaml = fmt::format("run: {{seed: {}}}\n", *seed_) + out_.yaml;
    if (out_.yaml.empty()) note("nothing is enabled: nothing to translate");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                           const std::string& hint = "") const {
    throw UserError({where_, key, expected, got, hint});
  }
  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    out_.notes.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  bool enabled(const Json& tree, const std::string& path) {
    if (!tree.is_object()) refuse(path, "an object", tree.dump());
    if (tree.value("enabled", false)) return true;
    note("{} is not enabled: left out", path);
    return false;
  }
  double number(const Json& tree, const std::string& key, const std::string& path) const {
    if (!tree.is_object() || !tree.contains(key) || !tree[key].is_number())
      refuse(path + "." + key, "a number", tree.is_object() && tree.contains(key) ? tree[key].dump() : "nothing");
    return tree[key].get<double>();
  }
  // Keys that we have no use for, with the reason.
  void unneeded(const Json& tree, const std::string& path, const std::vector<std::pair<const char*, const char*>>& keys) {
    for (auto [key, reason] : keys)
      if (tree.contains(key)) note("{}.{}: {}", path, key, reason);
  }
  void unknown(const Json& tree, const std::string& path, const std::vector<std::string>& known) {
    for (const auto& [key, value] : tree.items())
      if (std::find(known.begin(), known.end(), key) == known.end()) note("{}.{}: unknown, left out", path, key);
  }

  void efficiency(const Json& tree) {
    if (!enabled(tree, "data_efficiency")) return;
    unknown(tree, "data_efficiency", {"enabled", "seed", "data_sampling", "data_routing"});
    if (tree.contains("seed")) seed_ = static_cast<int64_t>(number(tree, "seed", "data_efficiency"));
    if (tree.contains("data_sampling")) sampling(tree["data_sampling"], "data_efficiency.data_sampling");
    if (tree.contains("data_routing")) routing(tree["data_routing"], "data_efficiency.data_routing");
  }

  void sampling(const Json& tree, const std::string& path) {
    if (!enabled(tree, path)) return;
    unneeded(tree, path, {{"num_epochs", "the run ends with train.steps or train.tokens; epochs follow"},
                          {"num_workers", "batches need no worker processes"},
                          {"pin_memory", "batches are not copied"},
                          {"dynamic_batching", "not translated: use hold: tokens"}});
    unknown(tree, path, {"enabled", "num_epochs", "num_workers", "pin_memory", "dynamic_batching", "curriculum_learning"});
    if (!tree.contains("curriculum_learning")) return;
    const Json& learning = tree["curriculum_learning"];
    const std::string below = path + ".curriculum_learning";
    if (!enabled(learning, below)) return;
    unneeded(learning, below, {{"data_cluster_path", "admitted samples are not kept in files"}});
    unknown(learning, below, {"enabled", "data_cluster_path", "curriculum_metrics"});
    if (!learning.contains("curriculum_metrics") || !learning["curriculum_metrics"].is_object())
      refuse(below + ".curriculum_metrics", "an object with metrics", "nothing");
    for (const auto& [name, metric] : learning["curriculum_metrics"].items())
      add_metric(name, metric, below + ".curriculum_metrics." + name);
    note("their first step is number 1 of a schedule, ours number 0: each value holds one step longer here");
  }

  void legacy(const Json& tree) {
    if (!enabled(tree, "curriculum_learning")) return;
    const std::string type = tree.value("curriculum_type", "seqlen");
    if (type != "seqlen") refuse("curriculum_learning.curriculum_type", "seqlen", type);
    unknown(tree, "curriculum_learning",
            {"enabled", "curriculum_type", "min_difficulty", "max_difficulty", "schedule_type", "schedule_config"});
    add_metric("seqlen", tree, "curriculum_learning");
  }

  void add_metric(const std::string& name, const Json& tree, const std::string& path) {
    const bool length = name.starts_with("seqlen");
    std::string entry = fmt::format(
        "  - {{metric: {}, ", length ? "length" : quote_yaml(name == "vocabularyrarity" || name == "voc" ? "rarity" : name));
    if (length) {
      entry += name.find("reshape") != std::string::npos ? "apply: reshape, " : "apply: truncate, ";
    } else {
      entry += "apply: filter, ";
      const std::string kind = tree.value("difficulty_type", "value");
      if (kind != "value" && kind != "percentile") refuse(path + ".difficulty_type", "value or percentile", kind);
      if (kind == "percentile") entry += "unit: percentile, ";
      if (tree.contains("index_to_metric_path")) entry += fmt::format("file: {}, ", quote_yaml(values_file(tree, path)));
    }
    unneeded(tree, path, {{"clustering_type", "every metric that filters does, and none that shortens"}});
    if (length)
      unneeded(tree, path,
               {{"index_to_sample_path", "lengths need no index"}, {"index_to_metric_path", "lengths need no index"}});
    else unneeded(tree, path, {{"index_to_sample_path", "the values of the samples say it all"}});
    curriculum_.push_back(entry + schedule(tree, path) + "}\n");
  }

  // From PREFIX_index_to_metric to PREFIX_sample_to_metric, which has a value a sample.
  std::string values_file(const Json& tree, const std::string& path) {
    if (!tree["index_to_metric_path"].is_string())
      refuse(path + ".index_to_metric_path", "a path", tree["index_to_metric_path"].dump());
    std::string file = tree["index_to_metric_path"].get<std::string>();
    const std::string from = "index_to_metric", to = "sample_to_metric";
    const size_t at = file.rfind(from);
    if (at == std::string::npos) refuse(path + ".index_to_metric_path", "a name with " + from, file);
    file = file.substr(0, at) + to;
    note("{}.index_to_metric_path: {} is read in its place", path, file);
    return file;
  }

  std::string schedule(const Json& tree, const std::string& path) {
    const std::string type = tree.value("schedule_type", "");
    const Json settings = tree.value("schedule_config", Json::object());
    const std::string below = path + ".schedule_config";
    if (type == "fixed_discrete") {
      if (!settings.contains("difficulty") || !settings.contains("max_step") ||
          settings["difficulty"].size() != settings["max_step"].size() + 1)
        refuse(below, "difficulty and max_step, one value more in the first", settings.dump());
      std::string table;
      for (size_t i = 0; i < settings["difficulty"].size(); i++)  // a difficulty lasts up to its max_step, that one included
        table += fmt::format("{}[{}, {}]", i ? ", " : "", i ? settings["max_step"][i - 1].get<int64_t>() + 1 : 0,
                             settings["difficulty"][i].get<double>());
      return fmt::format("over: steps, pacing: [{}]", table);
    }
    if (type != "fixed_linear" && type != "fixed_root")
      refuse(path + ".schedule_type", "fixed_linear, fixed_root or fixed_discrete", type.empty() ? "nothing" : type,
             type == "custom" ? "write your function's values as a table: pacing: [[0, VALUE], [BEGIN, VALUE]]" : "");
    const double from = number(tree, "min_difficulty", path), to = number(tree, "max_difficulty", path);
    const double step = number(settings, "difficulty_step", below), over = number(settings, "total_curriculum_step", below);
    if (std::fmod(from, step) != 0)
      note("{}: min_difficulty {} is no multiple of difficulty_step {}: ours begins with it all the same", path, from, step);
    if (std::fmod(to, step) != 0)
      note("{}: max_difficulty {} is no multiple of difficulty_step {}: ours reaches it at the end all the same", path, to,
           step);
    std::string text = fmt::format("from: {}, to: {}, step: {}, over: {} steps", from, to, step, static_cast<int64_t>(over));
    if (type == "fixed_root") text += fmt::format(", pacing: root {}", number(settings, "root_degree", below));
    return text;
  }

  void routing(const Json& tree, const std::string& path) {
    if (!enabled(tree, path)) return;
    unknown(tree, path, {"enabled", "random_ltd"});
    if (!tree.contains("random_ltd")) return;
    const Json& ltd = tree["random_ltd"];
    const std::string below = path + ".random_ltd";
    if (!enabled(ltd, below)) return;
    unneeded(ltd, below, {{"total_layer_num", "the model knows"},
                          {"random_ltd_layer_num", "the list of layers says it"},
                          {"model_mask_name", "masks need no name"},
                          {"model_type", "the model knows"},
                          {"micro_batch_size", "any will do"},
                          {"global_batch_size", "train.batch says it"},
                          {"hidden_state_order", "the model knows"}});
    unknown(
        ltd, below,
        {"enabled", "total_layer_num", "random_ltd_layer_num", "random_ltd_layer_id", "model_mask_name", "model_type",
         "micro_batch_size", "global_batch_size", "hidden_state_order", "random_ltd_schedule", "layer_token_lr_schedule"});
    const Json plan = ltd.value("random_ltd_schedule", Json::object());
    const std::string at = below + ".random_ltd_schedule";
    if (plan.value("schedule_type", "fixed_linear") != "fixed_linear")
      refuse(at + ".schedule_type", "fixed_linear", plan["schedule_type"].dump());
    const Json settings = plan.value("schedule_config", Json::object());
    dropping_ = fmt::format("token_dropping: {{from: {}, to: {}, step: {}, over: {} steps", number(plan, "min_value", at),
                            number(plan, "max_value", at), number(settings, "seq_per_step", at + ".schedule_config"),
                            static_cast<int64_t>(number(settings, "require_steps", at + ".schedule_config")));
    if (ltd.contains("random_ltd_layer_id")) {
      std::vector<int64_t> layers = ltd["random_ltd_layer_id"].get<std::vector<int64_t>>();
      std::sort(layers.begin(), layers.end());
      dropping_ += fmt::format(", layers: [{}]", fmt::join(layers, ", "));
    }
    dropping_ += "}\n";
    const Json rates = ltd.value("layer_token_lr_schedule", Json::object());
    if (!rates.value("enabled", false)) return;
    train_ = "train: {schedule_by: layer_tokens}\n";
    unneeded(rates, below + ".layer_token_lr_schedule",
             {{"total_layer_tokens", "give it as train.tokens, divided by the number of layers"},
              {"warmup_layer_tokens", "give it as train.warmup, in steps of full batches"},
              {"warmup_type", "ours is linear"}});
  }

  const Json& root_;
  const std::string& where_;
  FromDeepSpeed out_;
  std::vector<std::string> other_, curriculum_;
  std::string dropping_, train_;
  std::optional<int64_t> seed_;
};

}  // namespace

FromDeepSpeed from_deepspeed(std::string_view text, const std::string& where) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) throw UserError({where, "", "JSON", "something else", ""});
  try {
    return Translator(root, where).translate();
  } catch (const Json::exception& error) {
    throw UserError({where, "", "DeepSpeed's settings", error.what(), ""});
  }
}

}  // namespace megalith
