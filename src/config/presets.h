// Known models by name.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "config/model_shape.h"

namespace megalith {

struct Preset {
  std::string_view name;
  std::string_view about;  // where the numbers come from
  // ffn and kv_heads are 0 where fill_defaults() gives the model's own value, so that they follow an
  // overridden hidden or heads.
  ModelShape shape;
};

std::span<const Preset> presets();

// Throws UserError with the nearest known name; `where` is for the message.
const Preset& find_preset(std::string_view name, const std::string& where = "");

// A shape of this architecture before any field is given: context, norm_eps, tied, token_types as its papers
// have them; sizes 0.
ModelShape default_shape(Arch arch);

// Gives ffn and kv_heads, where still 0, what the architecture makes of hidden and heads.
void fill_defaults(ModelShape& shape);

// The table that `megalith presets` prints, with exact parameter counts.
std::string list_presets();

}  // namespace megalith
