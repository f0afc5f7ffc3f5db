// Generates reference pages from the option table. A test checks that the files in docs/reference are equal to them.
#pragma once
#include <string>

namespace megalith {

std::string reference_markdown();  // docs/reference/config.md
std::string reference_schema();    // docs/reference/config.schema.json, JSON Schema 2020-12

}  // namespace megalith
