// The key `curriculum`: a list of mappings; each becomes a CurriculumSettings.
#pragma once
#include "config/option_types.h"

namespace megalith {

Entry curriculum_option();

// Describes the keys of one mapping, for messages and the reference page.
std::string_view curriculum_form();

}  // namespace megalith
