// The name of an enumerated value in YAML, in files and in messages. Each enumeration has a function names_of(Enum) next
// to it, which returns the names, indexed by value.
#pragma once
#include <cstddef>
#include <string_view>

namespace megalith {

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<size_t>(value)];
}

}  // namespace megalith
