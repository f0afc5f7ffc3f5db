#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/light_commands.h"
#include "config/from_deepspeed.h"
#include "config/options.h"
#include "config/presets.h"
#include "config/reference.h"

namespace megalith {
namespace {

CommandResult translate(const CommandContext& context, const std::string& file) {
  const FromDeepSpeed ours = from_deepspeed(read_file(file), file);
  std::string shown;
  for (const std::string& note : ours.notes) shown += "# " + note + "\n";
  print(context, shown + ours.yaml);
  return {ExitCode::done, {{"yaml", ours.yaml}, {"notes", ours.notes}}};
}

CommandResult show_presets(const CommandContext& context) {
  print(context, list_presets());
  nlohmann::json all = nlohmann::json::array();
  for (const Preset& preset : presets()) {
    ModelShape shape = preset.shape;
    fill_defaults(shape);
    all.push_back({{"name", preset.name}, {"parameters", parameter_count(shape)}});
  }
  return {ExitCode::done, {{"presets", all}}};
}

}  // namespace

Command config_command() {
  struct Arguments {
    std::string key, file;
    bool schema = false;
  };
  auto a = std::make_shared<Arguments>();
  Command from_deepspeed{"from-deepspeed", "Translate the data efficiency settings of DeepSpeed to YAML.",
                         "These settings are curricula and token dropping. They are in DeepSpeed's configuration file, "
                         "ds_config.json. docs/guides/coming_from.md has a small example file, and translates other "
                         "settings.",
                         {"megalith config from-deepspeed ds_config.json",
                          "megalith config from-deepspeed ds_config.json --json"},
                         {{"FILE", &a->file, "Configuration file of DeepSpeed.", {.required = true}}},
                         [a](const CommandContext& context) { return translate(context, a->file); }};
  return {"config", "Explain the settings of a run.",
          "A setting is a key in the YAML file of the run, or KEY=VALUE on the command line.",
          {"megalith config train", "megalith config train.lr"},
          {{"KEY", &a->key, "Setting such as train.lr, or section such as train. Default: all settings."},
           {"--schema", &a->schema, "Print a JSON schema of all settings. With it, editors check and complete run files."}},
          [a](const CommandContext& context) {
            if (const size_t equals = a->key.find('='); equals != std::string::npos)
              throw UserError({"command line", "KEY", "the name of a setting", a->key,
                               fmt::format("write megalith config {}", a->key.substr(0, equals))});
            const std::string text = a->schema ? reference_schema() : explain(a->key);
            print(context, text);
            return CommandResult{ExitCode::done, {{"text", text}}};
          },
          {std::move(from_deepspeed)}};
}

Command presets_command() {
  return {"presets", "List the models that model.preset accepts.",
          "A preset sets the shape of the model, for example model: {preset: gpt2-124m}. The weights start at random.",
          {"megalith presets", "megalith presets --json"}, {},
          show_presets};
}

}  // namespace megalith
