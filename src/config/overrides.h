// The `key=value` arguments of a command line.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/mistakes.h"
#include "config/yaml.h"

namespace megalith {

inline constexpr const char* kCommandLine = "command line";  // the place in messages

struct Override {
  std::string key;
  Yaml value;
};

// Reads the arguments in their order. Leaves out wrong ones and notes them in `mistakes`.
std::vector<Override> read_overrides(std::span<const std::string> arguments, Mistakes& mistakes);

}  // namespace megalith
