// Looks up known models by name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "families/family.h"

namespace megalith {

std::vector<Preset> presets();  // of all families

// Throws UserError with the nearest known name if `name` is unknown. `where` is the place in the message.
Preset find_preset(std::string_view name, const std::string& where = "");

// Returns the table that `megalith presets` prints, with exact parameter counts.
std::string list_presets();

}  // namespace megalith
