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
  Command from_deepspeed{"from-deepspeed", "translate the data efficiency settings of a ds_config.json into YAML",
                         {"megalith config from-deepspeed ds_config.json",
                          "megalith --json config from-deepspeed ds_config.json"},
                         {{"FILE", &a->file, "DeepSpeed's ds_config.json", {.required = true}}},
                         [a](const CommandContext& context) { return translate(context, a->file); }};
  return {"config", "explain the settings of a run",
          {"megalith config train", "megalith config train.lr"},
          {{"KEY", &a->key, "a setting or a section; default: all settings"},
           {"--schema", &a->schema, "print the JSON schema for editors"}},
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
  return {"presets", "list the models that model.preset accepts", {"megalith presets", "megalith --json presets"}, {},
          show_presets};
}

}  // namespace megalith
