// Pages generated from the option table; a test keeps the files in docs/reference equal to them.
#pragma once
#include <string>

namespace megalith {

std::string reference_markdown();  // docs/reference/config.md
std::string reference_schema();    // docs/reference/config.schema.json, JSON Schema 2020-12

}  // namespace megalith
