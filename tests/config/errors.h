// Returns the error message of a piece of code as text, for comparisons.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "config/parse.h"

namespace megalith {

// Returns the message of the UserError that `code` throws, or "no error" if it throws nothing. Other exceptions pass
// through and fail the test.
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
