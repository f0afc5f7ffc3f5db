// Reads the parts of a tokenizer.json. Errors name the part.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/regex.h"

namespace megalith {

// One component of a tokenizer.json (a normalizer, a model, …) and its name in error messages.
struct Component {
  const nlohmann::json& json;
  const std::string& where;  // the file
  std::string name;          // "pre_tokenizer", "decoder[2]"

  std::string type() const;
  Component child(const nlohmann::json& part, size_t index) const;
  // Returns a required field. T is one of the types that component.cpp lists.
  template <class T>
  T need(const char* field) const;
  // Returns an optional field, or `otherwise` if it is missing or null.
  template <class T>
  T get(const char* field, T otherwise) const;
  const nlohmann::json& array(const char* field) const;
  // Reads {"pattern": {"Regex": …}} or {"pattern": {"String": …}}.
  std::unique_ptr<Regex> read_pattern() const;

  [[noreturn]] void bad(const std::string& expected, const std::string& got, const std::string& hint = "") const;
  [[noreturn]] void unknown(const std::vector<std::string>& known) const;
};

}  // namespace megalith
