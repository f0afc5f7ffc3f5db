// Reading the parts of a tokenizer.json with errors that name the part.
#pragma once
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "base/error.h"
#include "text/regex.h"

namespace megalith {

// One component of a tokenizer.json (a normalizer, a model, …) and how to name it to the user.
struct Component {
  const nlohmann::json& json;
  const std::string& where;  // the file
  std::string name;          // "pre_tokenizer", "decoder[2]"

  std::string type() const {
    return json.is_object() ? json.value("type", std::string("?")) : json.type_name();
  }
  Component child(const nlohmann::json& part, size_t index) const {
    return {part, where, name + "[" + std::to_string(index) + "]"};
  }
  // A field that must be there.
  template <class T>
  T need(const char* field) const {
    auto found = json.find(field);
    if (found == json.end()) bad(std::string("a field ") + field, "none");
    return convert<T>(field, *found);
  }
  // A field with a default; null counts as absent.
  template <class T>
  T get(const char* field, T otherwise) const {
    auto found = json.find(field);
    return found == json.end() || found->is_null() ? otherwise : convert<T>(field, *found);
  }
  const nlohmann::json& array(const char* field) const {
    auto found = json.find(field);
    if (found == json.end() || !found->is_array()) bad(std::string("a list ") + field, "none");
    return *found;
  }
  // {"pattern": {"Regex": …}} or {"pattern": {"String": …}}
  std::unique_ptr<Regex> read_pattern() const {
    auto found = json.find("pattern");
    if (found != json.end() && found->is_object() && found->contains("Regex"))
      return std::make_unique<Regex>(found->at("Regex").get<std::string>(), where + ": " + name);
    if (found != json.end() && found->is_object() && found->contains("String"))
      return std::make_unique<Regex>(Regex::quote(found->at("String").get<std::string>()),
                                     where + ": " + name);
    bad("a pattern, String or Regex", found == json.end() ? "none" : found->dump());
  }
  template <class T>
  T convert(const char* field, const nlohmann::json& value) const {
    try {
      return value.template get<T>();
    } catch (const nlohmann::json::exception&) {
      bad(std::string("the usual kind of value for ") + field, value.dump().substr(0, 60));
    }
  }
  [[noreturn]] void bad(const std::string& expected, const std::string& got,
                        const std::string& hint = "") const {
    throw UserError({where, name + " " + type(), expected, got, hint});
  }
  [[noreturn]] void unknown(const std::string& known) const {
    throw UserError({where, name, "one of " + known, type(), "this kind of tokenizer is not supported"});
  }
};

}  // namespace megalith
