#include "config/presets.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/hub_name.h"
#include "base/nearest.h"
#include "config/known_elsewhere.h"
#include "config/yaml.h"
#include "families/registry.h"

namespace megalith {
namespace {

// A folder and the name of a model of Hugging Face belong to model.from.
std::string hint_for_preset(std::string_view name, std::span<const std::string_view> known) {
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored))
    return fmt::format("for the folder {0}, write model: {{from: {0}}}", name);
  const std::string_view meant = word_for("model.preset", name);
  if (const std::string_view near = nearest(name, known); meant.empty() && !near.empty())
    return fmt::format("did you mean {}? `megalith presets` lists all models", near);
  const std::string own = meant.empty() ? "`megalith presets` lists all models" : fmt::format("did you mean {}?", meant);
  const std::string download = how_to_download(name);
  if (download.empty()) return own;
  return fmt::format("{}{} {}, then write model: {{from: {}}}", own, meant.empty() ? "." : "", download, name);
}

}  // namespace

std::vector<Preset> presets() {
  std::vector<Preset> all;
  for (const Family* family : families())
    for (const Preset& preset : family->presets()) all.push_back(preset);
  return all;
}

Preset find_preset(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw UserError({where, "model.preset", "a known model", describe_text(std::string(name)), hint_for_preset(name, names)});
}

std::string list_presets() {
  std::string table =
      fmt::format("{:<11} {:<6} {:>13} {:>7} {:>7} {:>6} {:>9} {:>6} {:>7} {:>8}  {}\n", "preset", "arch",
                  "parameters", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "context", "from");
  for (const Preset& preset : presets()) {
    ModelShape s = preset.shape;
    fill_defaults(s);
    table += fmt::format("{:<11} {:<6} {:>13} {:>7} {:>7} {:>6} {:>9} {:>6} {:>7} {:>8}  {}\n", preset.name,
                         s.family->name, parameter_count(s), s.layers, s.hidden, s.heads, s.kv_heads, s.ffn,
                         s.vocab, s.context, preset.about);
  }
  return table;
}

}  // namespace megalith
