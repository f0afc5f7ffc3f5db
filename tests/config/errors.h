// What a piece of code complains about, as text to compare.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "config/parse.h"

namespace megalith {

// The message of the UserError that `code` throws; "no error" when it throws none. Anything else escapes and
// fails.
template <class Code>
std::string complaint(Code code) {
  try {
    code();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

inline Config parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_config(yaml, "run.yaml", "run", overrides);
}

inline std::string mistake(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return complaint([&] { parse(yaml, overrides); });
}

// The smallest model, for tests of other settings.
inline const std::string kModel = "model: {arch: llama, layers: 2, hidden: 64, heads: 4}\n";

}  // namespace megalith
