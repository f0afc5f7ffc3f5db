// The key `curriculum`: a list of mappings, each a CurriculumSettings.
#pragma once
#include "config/option_types.h"

namespace megalith {

Entry curriculum_option();

// What one mapping may hold, in words: for messages and the reference page.
std::string_view curriculum_form();

}  // namespace megalith
