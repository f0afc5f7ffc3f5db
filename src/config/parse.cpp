#include "config/parse.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/mistakes.h"
#include "config/check.h"
#include "config/known_elsewhere.h"
#include "config/names.h"
#include "config/options.h"
#include "config/pacing_text.h"
#include "config/presets.h"
#include "config/written.h"

namespace megalith {
namespace {

// Says what the value of an unknown key means, and what is wrong with it for the option that the key means.
std::string about_value(const Written::Unknown& unknown, Config config) {
  if (std::string meaning = meaning_of(unknown.name, unknown.value, config); !meaning.empty()) return meaning;
  const Option* meant = option_meant(unknown.name);
  if (!meant || !section_meant(unknown.name).empty()) return "";
  if (unknown.value.kind == Yaml::Kind::map)  // a section there, a value here
    return fmt::format("write {}: {{{}: ...}} with the other entries beside it", meant->section(), meant->key());
  try {
    set_option(*meant, config, unknown.value);
  } catch (const UserError& error) {
    const std::string& hint = error.parts.hint;
    return fmt::format("its value: expected {}, got {}{}", error.parts.expected, error.parts.got, hint.empty() ? "" : "; " + hint);
  }
  return "";
}

// Reads every value alone, so that all wrong values and unknown keys are reported at once.
void check_values(const Written& written, Mistakes& mistakes) {
  Config config;
  for (const Option& option : options())
    if (const Yaml* value = written.find(option.name)) mistakes.none_in([&] { set_option(option, config, *value); });
  if (!config.model.preset.empty())
    mistakes.none_in([&] { find_preset(config.model.preset, written.where("model.preset")); });
  for (const Written::Unknown& each : written.unknown())
    mistakes.add(unknown_key(each.name, each.value.where, about_value(each, config)));
}

// Throws UserError if keys give the shape that model.from gives, too.
void check_only_from(const Written& written) {
  Mistakes mistakes;
  mistakes.none_in([&] { written.refuse_both("model.from", "model.preset"); });
  for (const Option& option : options())
    if (gives_shape(option))
      mistakes.none_in([&] {
        written.refuse_both("model.from", option.name, "remove one: the shape comes from the folder's config.json");
      });
  mistakes.throw_any();
}

// Sets the shape to that of the preset, or to the architecture's defaults. The fields are read later. Does nothing with
// model.from: the folder decides the shape.
void begin_shape(Config& config, const Written& written) {
  for (std::string_view name : {"model.from", "model.preset", "model.arch"})
    if (const Yaml* value = written.find(name)) set_option(*find_option(name), config, *value);
  if (!config.model.from.empty()) return check_only_from(written);
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

void check_decay(const Config& config, const Written& written) {
  for (const auto& [key, decays] : {std::pair("train.min_lr", "cosine, linear or wsd"), std::pair("train.decay_steps", "wsd")})
    if (written.find(key) && !find_option(key)->get(config))
      throw UserError({written.where(key), key, fmt::format("train.decay {}", decays),
                       fmt::format("train.decay {}", name_of(config.train.decay)), "remove it, or change train.decay"});
}

void check_written(const Config& config, const Written& written, Mistakes& mistakes) {
  mistakes.none_in([&] { check_dropping_table(config, written); });
  for (auto [a, b] : kAlternatives) mistakes.none_in([&] { written.refuse_both(a, b); });
  if (written.find("data.tokenizer.vocab") && !written.find("data.tokenizer.train"))
    mistakes.add(UserError({written.where("data.tokenizer.vocab"), "data.tokenizer.vocab",
                            "data.tokenizer.train next to it", "only this key",
                            "write tokenizer: {train: bpe, vocab: 4096}"}));
  mistakes.none_in([&] { check_decay(config, written); });
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

// Sets the values that the user has not written and that follow from others.
void settle_defaults(Config& config, const Written& written, const std::string& run_name, const std::string& where) {
  if (config.model.shape.family) fill_defaults(config.model.shape);
  if (written.find("train.tokens") && !written.find("train.schedule_by")) config.train.schedule_by = Counted::tokens;
  if (!written.find("train.min_lr")) config.train.min_lr = a_tenth(config.train.lr);
  if (config.train.decay == Decay::wsd && !written.find("train.decay_steps"))
    config.train.decay_steps = usual_decay_steps(config.train);
  if (config.run.dir.empty()) config.run.dir = default_directory(run_name, where);
}

// Files that newcomers give in place of a settings file. `ending`: of the file name.
struct OtherFile {
  std::string_view ending, what, hint;
};
constexpr std::string_view kNameText = "write its name in data.train: megalith train RUN.yaml data.train={}";
constexpr std::string_view kNameFolder = "write its folder in model.from: megalith train RUN.yaml model.from=FOLDER";
constexpr OtherFile kOtherFiles[] = {
    {".txt", "text", kNameText},           {".jsonl", "text", kNameText},
    {".gz", "text", kNameText},            {".zst", "text", kNameText},
    {".safetensors", "weights", kNameFolder}, {".bin", "weights", kNameFolder},
    {".pt", "weights", kNameFolder},       {".gguf", "weights", kNameFolder},
    {"config.json", "the shape of a model", kNameFolder},
    {".toml", "a TOML file", "write sections as model: and values as key: value"},
    {".py", "a program", "write the settings into a YAML file such as examples/quickstart.yaml"},
};

// Throws UserError if the name of the file says that it is no settings file.
void refuse_other_file(const std::filesystem::path& path) {
  for (const OtherFile& other : kOtherFiles)
    if (path.filename().string().ends_with(other.ending))
      throw UserError({path.string(), "", "a YAML file with the settings of a run", std::string(other.what),
                       fmt::format(fmt::runtime(other.hint), path.string())});
}

}  // namespace

Config parse_config(std::string_view yaml_text, const std::string& where, const std::string& default_run_name,
                    std::span<const std::string> overrides) {
  Mistakes wrong;
  const Written written = read_settings(yaml_text, where, overrides, wrong);
  check_values(written, wrong);
  wrong.throw_any();  // how values fit together can be judged only if each of them is right

  Config config;
  Mistakes unfit;
  const bool has_shape = unfit.none_in([&] { begin_shape(config, written); });
  for (const Option& option : options())
    if (const Yaml* value = written.find(option.name)) set_option(option, config, *value);
  settle_defaults(config, written, default_run_name, where);
  const auto where_of = [&](std::string_view key) { return written.where(key); };
  check_written(config, written, unfit);
  unfit.none_in([&] { check_settings(config, where_of); });
  if (has_shape && config.model.from.empty()) unfit.none_in([&] { check_model(config, config.model.shape, where_of); });
  unfit.throw_any();
  return config;
}

Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides) {
  const std::string text = read_file(path);
  try {
    return parse_config(text, path.string(), path.stem().string(), overrides);
  } catch (const UserError&) {
    refuse_other_file(path);
    throw;
  }
}

std::string source_of(std::string_view key, const std::filesystem::path& path, std::span<const std::string> overrides) {
  Mistakes known;  // the settings have been read before
  return read_settings(read_file(path), path.string(), overrides, known).where(key);
}

}  // namespace megalith
