#include "text/component.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "base/json.h"

namespace megalith {
namespace {

template <class T>
T convert(const Component& component, const char* field, const nlohmann::json& value) {
  try {
    return value.get<T>();
  } catch (const nlohmann::json::exception&) {
    component.bad(std::string("a valid value for ") + field, print_json(value).substr(0, 60));
  }
}

}  // namespace

std::string Component::type() const {
  return json.is_object() ? json.value("type", std::string("?")) : json.type_name();
}

Component Component::child(const nlohmann::json& part, size_t index) const {
  return {part, where, name + "[" + std::to_string(index) + "]"};
}

template <class T>
T Component::need(const char* field) const {
  auto found = json.find(field);
  if (found == json.end()) bad(std::string("a field ") + field, "no such field");
  return convert<T>(*this, field, *found);
}

template <class T>
T Component::get(const char* field, T otherwise) const {
  auto found = json.find(field);
  return found == json.end() || found->is_null() ? otherwise : convert<T>(*this, field, *found);
}

template std::string Component::need(const char*) const;
template int64_t Component::need(const char*) const;
template std::string Component::get(const char*, std::string) const;
template int64_t Component::get(const char*, int64_t) const;
template double Component::get(const char*, double) const;
template bool Component::get(const char*, bool) const;

const nlohmann::json& Component::array(const char* field) const {
  auto found = json.find(field);
  if (found == json.end() || !found->is_array()) bad(std::string("a list ") + field, "no such list");
  return *found;
}

std::unique_ptr<Regex> Component::read_pattern() const {
  auto found = json.find("pattern");
  if (found != json.end() && found->is_object() && found->contains("Regex"))
    return std::make_unique<Regex>(found->at("Regex").get<std::string>(), where + ": " + name);
  if (found != json.end() && found->is_object() && found->contains("String"))
    return std::make_unique<Regex>(Regex::quote(found->at("String").get<std::string>()), where + ": " + name);
  bad("a pattern with String or Regex", found == json.end() ? "no pattern" : print_json(*found));
}

void Component::bad(const std::string& expected, const std::string& got, const std::string& hint) const {
  throw UserError({where, name + " " + type(), expected, got, hint});
}

void Component::unknown(const std::vector<std::string>& known) const {
  throw UserError({where, name, "one of " + some_of(known), type(), "this kind of tokenizer is not supported"});
}

}  // namespace megalith
