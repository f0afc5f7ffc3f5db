#include "config/presets.h"

#include <fmt/format.h>

#include "base/error.h"
#include "config/nearest.h"
#include "families/registry.h"

namespace megalith {

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
  std::string_view near = nearest(name, names);
  throw UserError({where, "model.preset",
                   "a known model", std::string(name),
                   near.empty() ? "`megalith presets` lists all models" : fmt::format("did you mean {}?", near)});
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
