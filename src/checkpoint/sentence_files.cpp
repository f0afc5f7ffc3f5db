#include "checkpoint/sentence_files.h"

#include <nlohmann/json.hpp>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "families/hf_fields.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kModules = "modules.json";
constexpr const char* kText = "sentence_bert_config.json";
constexpr const char* kPrompts = "config_sentence_transformers.json";
constexpr const char* kPooling = "1_Pooling/config.json";

// Names of pooling modes: in new files the value of pooling_mode, in old files the key of a flag.
struct Mode {
  Pooling pooling;
  std::string_view name, flag;
};
constexpr Mode kModes[] = {{Pooling::mean, "mean", "pooling_mode_mean_tokens"},
                           {Pooling::cls, "cls", "pooling_mode_cls_token"},
                           {Pooling::last, "lasttoken", "pooling_mode_lasttoken"}};

json read_object(const fs::path& path) {
  json object = try_parse_json(read_file(path), path.string());
  if (!object.is_object()) throw UserError({path.string(), "", "a JSON object", "something else", "the file is damaged"});
  return object;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& key, const std::string& expected, const std::string& got) {
  throw UserError({path.string(), key, expected, got, "other ways to make vectors are not supported"});
}

Pooling read_pooling(const fs::path& path) {
  const json object = read_object(path);
  std::vector<std::string> on;
  for (const auto& [key, value] : object.items()) {
    if (key == "pooling_mode")
      for (const json& mode : value.is_array() ? value : json::array({value})) on.push_back(mode.is_string() ? mode.get<std::string>() : print_json(mode));
    else if (key.starts_with("pooling_mode_") && value == true) on.push_back(key);
  }
  for (const Mode& mode : kModes)
    if (on.size() == 1 && (on[0] == mode.name || on[0] == mode.flag)) return mode.pooling;
  refuse(path, "pooling_mode", "one of mean, cls and lasttoken", on.empty() ? "none" : on.front() + (on.size() > 1 ? " and more" : ""));
}

// The last part of a module's type: "sentence_transformers.models.Pooling" is Pooling.
std::string kind_of(const json& module, const fs::path& path) {
  const std::string type = module.is_object() ? module.value("type", "") : "";
  if (type.empty()) refuse(path, "type", "the type of a module", print_json(module));
  return type.substr(type.rfind('.') + 1);
}

}  // namespace

std::optional<SentenceForm> read_sentence_form(const fs::path& folder) {
  const fs::path path = folder / kModules;
  if (!fs::exists(path)) return std::nullopt;
  const json modules = try_parse_json(read_file(path), path.string());
  if (!modules.is_array()) refuse(path, "", "a list of modules", "something else");
  SentenceForm form;
  for (size_t i = 0; i < modules.size(); i++) {
    const std::string kind = kind_of(modules[i], path), place = modules[i].value("path", "");
    if (kind == "Transformer" && i == 0) {
      if (!place.empty())
        throw UserError({path.string(), "path", "a model in the folder itself", place, fmt::format("use {}", (folder / place).string())});
    } else if (kind == "Pooling" && i == 1) {
      form.pooling = read_pooling(folder / place / "config.json");
    } else if (kind == "Normalize" && i == 2) {
      form.unit_length = true;
    } else {
      refuse(path, "type", "the modules Transformer, Pooling and Normalize, in this order", kind);
    }
  }
  if (modules.size() < 2) refuse(path, "type", "the modules Transformer and Pooling", fmt::format("{} modules", modules.size()));
  if (const fs::path text = folder / kText; fs::exists(text)) {
    const json object = read_object(text);
    const HfFields f(object, text.string());
    f.must_be("do_lower_case", false, "a tokenizer that makes text lower-case has this setting in tokenizer.json");
    form.longest = f.count_or("max_seq_length", 0);
  }
  if (const fs::path prompts = folder / kPrompts; fs::exists(prompts)) {
    const json object = read_object(prompts);
    if (const json name = object.value("default_prompt_name", json()); name.is_string())
      refuse(prompts, "default_prompt_name", "null: put the prompt into your texts", name.get<std::string>());
  }
  return form;
}

std::vector<std::pair<std::string, std::string>> sentence_files(const SentenceForm& form, const ModelShape& shape) {
  const std::string models = "sentence_transformers.models.";
  ordered_json modules = ordered_json::array({{{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", models + "Transformer"}},
                                              {{"idx", 1}, {"name", "1"}, {"path", "1_Pooling"}, {"type", models + "Pooling"}}});
  if (form.unit_length) modules.push_back({{"idx", 2}, {"name", "2"}, {"path", "2_Normalize"}, {"type", models + "Normalize"}});
  ordered_json pooling{{"word_embedding_dimension", shape.hidden}};
  for (const Mode& mode : kModes) pooling[std::string(mode.flag)] = mode.pooling == form.pooling;
  const int64_t longest = form.longest > 0 ? form.longest : shape.longest_sequence();
  const auto text = [](const ordered_json& value) { return print_json(value, 2) + "\n"; };
  return {{kModules, text(modules)},
          {kPooling, text(pooling)},
          {kText, text({{"max_seq_length", longest}, {"do_lower_case", false}})},
          {kPrompts, text({{"prompts", ordered_json::object()}, {"default_prompt_name", nullptr}, {"similarity_fn_name", "cosine"}})}};
}

std::vector<std::string> sentence_file_names() { return {kModules, kPooling, kText, kPrompts}; }

}  // namespace megalith
