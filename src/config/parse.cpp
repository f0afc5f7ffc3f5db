#include "config/parse.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "config/check.h"
#include "config/names.h"
#include "config/options.h"
#include "config/pacing_text.h"
#include "config/presets.h"
#include "config/yaml.h"

namespace megalith {
namespace {

const std::string kCommandLine = "command line";

// Pairs of keys that exclude each other. An override of one replaces the other.
constexpr std::pair<std::string_view, std::string_view> kAlternatives[] = {
    {"train.steps", "train.tokens"},
    {"data.tokenizer.path", "data.tokenizer.train"},
    {"data.tokenizer.path", "data.tokenizer.vocab"},
};

// Returns the place of a path such as "[2].to" in a list of mappings, or the place of the entry if it does not have the
// key.
std::string place_inside(const Yaml& list, std::string_view path) {
  size_t number = 0;
  std::from_chars(path.data() + 1, path.data() + path.size(), number);
  if (number >= list.items.size()) return list.where;
  const Yaml& entry = list.items[number];
  const std::string_view key = path.substr(std::min(path.find('.'), path.size() - 1) + 1);
  const auto written = std::ranges::find(entry.entries, key, &Yaml::Entry::first);
  return written == entry.entries.end() ? entry.where : written->second.where;
}

// The values that the user wrote, per option. The file is layer 0; each override is one layer higher.
class Written {
 public:
  explicit Written(std::string file) : file_(std::move(file)) {}

  void add(std::string_view name, const Yaml& value, int layer) {
    if (const Option* option = find_option(name)) return put(*option, value, layer);
    if (!is_section(name) && !name.empty()) unknown_key(name, value.where);
    if (value.kind == Yaml::Kind::map) {
      for (const auto& [key, entry] : value.entries)
        add(name.empty() ? key : fmt::format("{}.{}", name, key), entry, layer);
    } else if (value.kind == Yaml::Kind::null) {
      std::erase_if(values_, [&](const auto& v) {
        return !name.empty() && v.first.starts_with(fmt::format("{}.", name));
      });
    } else if (const Option* option = shorthand(name)) {
      put(*option, value, layer);
    } else {
      throw UserError({value.where, std::string(name), "a mapping of keys to values", value.describe(),
                       name.empty() ? "begin with model: and data:"
                                    : fmt::format("`megalith config {}` lists its keys", name)});
    }
  }

  const Yaml* find(std::string_view name) const {
    auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second.value;
  }

  std::string where(std::string_view name) const {
    const size_t option = std::min(name.find('['), name.size());
    const Yaml* value = find(name.substr(0, option));
    if (!value) return file_;
    return option < name.size() ? place_inside(*value, name.substr(option)) : value->where;
  }

  void refuse_both(std::string_view a, std::string_view b, std::string_view hint = "remove one") const {
    if (find(a) && find(b))
      throw UserError(
          {where(b), std::string(b), fmt::format("either {} or {}", a, b), "both", std::string(hint)});
  }

 private:
  struct Value {
    Yaml value;
    int layer;
  };

  static const Option* shorthand(std::string_view section) {
    for (const Option& option : options())
      if (option.shorthand && option.section() == section) return &option;
    return nullptr;
  }

  void put(const Option& option, const Yaml& value, int layer) {
    auto found = values_.find(option.name);
    if (found != values_.end() && found->second.layer == layer)
      throw UserError({value.where, std::string(option.name), "each key once", "a second value",
                       fmt::format("remove one; the first is at {}", found->second.value.where)});
    if (value.kind == Yaml::Kind::null) {
      values_.erase(option.name);
      return;
    }
    for (auto [a, b] : kAlternatives)
      if (option.name == a || option.name == b) replace_in_file(option.name == a ? b : a, layer);
    values_.insert_or_assign(option.name, Value{value, layer});
  }

  // Removes the file's value of `name` if an override replaces it. Two overrides that contradict each other are refused
  // later.
  void replace_in_file(std::string_view name, int layer) {
    auto found = values_.find(name);
    if (found != values_.end() && layer > 0 && found->second.layer == 0) values_.erase(found);
  }

  std::string file_;
  std::map<std::string_view, Value> values_;  // keys are views of the option table
};

bool gives_shape(const Option& option) {
  return (option.section() == "model" || option.section() == "model.experts") && option.name != "model.from" &&
         option.name != "model.preset";
}

// Sets the shape to that of the preset, or to the architecture's defaults. The fields are read later. Does nothing with
// model.from: the folder decides the shape.
void begin_shape(Config& config, const Written& written) {
  for (std::string_view name : {"model.from", "model.preset", "model.arch"})
    if (const Yaml* value = written.find(name)) set_option(*find_option(name), config, *value);
  if (!config.model.from.empty()) {
    written.refuse_both("model.from", "model.preset");
    for (const Option& option : options())
      if (gives_shape(option))
        written.refuse_both("model.from", option.name,
                            "remove one: the shape comes from the folder's config.json");
    return;
  }
  const Yaml* arch = written.find("model.arch");
  if (!config.model.preset.empty()) {
    const Family* wanted = config.model.shape.family;
    config.model.shape = find_preset(config.model.preset, written.where("model.preset")).shape;
    if (arch && wanted != config.model.shape.family)
      throw UserError(
          {arch->where, "model.arch",
           fmt::format("{}, the architecture of model.preset {}", config.model.shape.family->name, config.model.preset),
           std::string(wanted->name), "remove model.arch or model.preset"});
  } else if (arch) {
    config.model.shape = default_shape(*config.model.shape.family);
  } else {
    throw UserError({written.where("model.layers"), "model", "model.preset, model.arch with its sizes, or model.from",
                     "none of these",
                     "write for example model: {preset: gpt2-124m}; `megalith presets` lists all presets"});
  }
}

// A pacing must have either the numbers of a formula or a table.
void check_dropping_table(const Config& config, const Written& written) {
  const bool table = !config.token_dropping.pacing.table.empty();
  auto refuse = [&](std::string_view key, const char* expected, const char* got, const char* hint) {
    throw UserError({written.where(key), std::string(key), expected, got, hint});
  };
  if (const std::string_view over = "token_dropping.over"; const Yaml* value = written.find(over)) {
    const auto span = read_span(*value);  // no value if the text is "never"
    if (table && (!span || span->first > 0))
      refuse(over, "only the word steps or tokens, because there is a table", value->text.c_str(),
             "remove the number, or token_dropping.pacing");
    if (!table && span && span->first == 0)
      refuse(over, "a number of steps or tokens", value->text.c_str(), "write for example 5000 steps");
  }
  for (std::string_view key : {"token_dropping.from", "token_dropping.to", "token_dropping.step"})
    if (const Yaml* value = written.find(key); table && value)
      refuse(key, "no such key next to a table, which contains the values", value->text.c_str(), "remove it");
}

void check_written(const Config& config, const Written& written) {
  check_dropping_table(config, written);
  for (auto [a, b] : kAlternatives) written.refuse_both(a, b);
  if (written.find("data.tokenizer.vocab") && !written.find("data.tokenizer.train"))
    throw UserError({written.where("data.tokenizer.vocab"), "data.tokenizer.vocab",
                     "data.tokenizer.train next to it", "only this key",
                     "write tokenizer: {train: bpe, vocab: 4096}"});
  for (const auto& [key, decays] : {std::pair("train.min_lr", "cosine, linear or wsd"), std::pair("train.decay_steps", "wsd")})
    if (written.find(key) && !find_option(key)->get(config))
      throw UserError({written.where(key), key, fmt::format("train.decay {}", decays),
                       fmt::format("train.decay {}", name_of(config.train.decay)), "remove it, or change train.decay"});
}

// A fifth of the run, rounded up, but at most the steps after warm-up.
int64_t usual_decay_steps(const TrainSettings& train) {
  const int64_t fifth = train.steps / 5 + (train.steps % 5 != 0);
  return std::clamp<int64_t>(train.steps - train.warmup, 0, fifth);
}

// Rounds to 15 digits, so that a tenth of 3e-4 is 3e-05, not 2.9999999999999997e-05.
double a_tenth(double value) {
  std::string digits = fmt::format("{:.15g}", value / 10);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return std::min(rounded, value);
}

std::string default_directory(const std::string& run_name, const std::string& where) {
  if (!is_utf8(run_name))
    throw UserError(
        {where, "run.dir", "a file name in UTF-8, because it names the run directory", "other bytes", "set run.dir"});
  return "runs/" + run_name;
}

std::pair<std::string, Yaml> parse_override(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UserError({kCommandLine, "", "key=value", text.empty() ? "an empty argument" : quote_yaml(text),
                     "write for example train.lr=1e-3"});
  const std::string key = text.substr(0, equals);
  try {
    Yaml value = parse_yaml(std::string_view(text).substr(equals + 1), kCommandLine, false);
    value.where = kCommandLine;  // also when there is nothing after the sign
    return {key, std::move(value)};
  } catch (const UserError& error) {  // this error knows only the value: add the key
    UserError::Parts parts = error.parts;
    parts.key = parts.key.empty() ? key : fmt::format("{}.{}", key, parts.key);
    throw UserError(std::move(parts));
  }
}

}  // namespace

Config parse_config(std::string_view yaml_text, const std::string& where, const std::string& default_run_name,
                    std::span<const std::string> overrides) {
  Written written(where);
  int layer = 0;
  written.add("", parse_yaml(yaml_text, where), layer);
  for (const std::string& text : overrides) {
    auto [key, value] = parse_override(text);
    written.add(key, value, ++layer);
  }

  Config config;
  begin_shape(config, written);
  for (const Option& option : options())
    if (const Yaml* value = written.find(option.name)) set_option(option, config, *value);
  if (config.model.from.empty()) fill_defaults(config.model.shape);
  if (written.find("train.tokens") && !written.find("train.schedule_by")) config.train.schedule_by = Counted::tokens;
  if (!written.find("train.min_lr")) config.train.min_lr = a_tenth(config.train.lr);
  if (config.train.decay == Decay::wsd && !written.find("train.decay_steps"))
    config.train.decay_steps = usual_decay_steps(config.train);
  if (config.run.dir.empty()) config.run.dir = default_directory(default_run_name, where);

  auto where_of = [&](std::string_view key) { return written.where(key); };
  check_written(config, written);
  check_settings(config, where_of);
  if (config.model.from.empty()) check_model(config, config.model.shape, where_of);
  return config;
}

Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides) {
  return parse_config(read_file(path), path.string(), path.stem().string(), overrides);
}

}  // namespace megalith
