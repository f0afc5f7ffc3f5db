#include "config/json_object.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "config/yaml.h"

namespace megalith {
namespace {

using Json = JsonObject::Json;
using Kind = JsonObject::Kind;

const char* name_of_kind(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::number:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::object:
      break;
  }
  return "an object";
}

bool is(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return value.is_boolean();
    case Kind::number:
      return value.is_number();
    case Kind::text:
      return value.is_string();
    case Kind::list:
      return value.is_array();
    case Kind::object:
      break;
  }
  return value.is_object();
}

// Returns a short text on one line, for the "got" part of a message.
std::string describe(const Json* value) {
  constexpr size_t kMostShown = 60;
  if (!value || value->is_null()) return "nothing";
  if (value->is_object()) return "an object";
  if (value->is_array()) return value->empty() ? "an empty list" : fmt::format("a list of length {}", value->size());
  const std::string text = print_ascii_json(*value);
  return text.size() > kMostShown ? text.substr(0, kMostShown) + "..." : text;
}

std::string expected_number(const char* what, const Range& range) {
  const std::string bounds = range.describe();
  return bounds.empty() ? what : fmt::format("{} {}", what, bounds);
}

std::optional<double> read_double(const Json& value, const Range& range, bool whole) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!range.holds(number) || (whole && number != std::floor(number))) return std::nullopt;
  return number;
}

}  // namespace

JsonObject::JsonObject(const Json& json, std::string where, std::string path)
    : json_(json), where_(std::move(where)), path_(std::move(path)) {
  if (!json_.is_object()) refuse("", name_of_kind(Kind::object), describe(&json_));
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) keys.push_back(key);
  return keys;
}

std::string JsonObject::path(const std::string& key) const {
  if (key.empty()) return path_;
  // quoted, because a key can contain dots and line feeds
  return path_.empty() ? quote_yaml(key) : path_ + "." + quote_yaml(key);
}

const Json* JsonObject::find(const std::string& key) const {
  auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json* JsonObject::take(const std::string& key, Kind kind) {
  read_.insert(key);
  const Json* value = find(key);
  if (value && !is(*value, kind)) refuse(key, name_of_kind(kind), describe(value));
  return value;
}

bool JsonObject::flag(const std::string& key) {
  const Json* value = take(key, Kind::boolean);
  return value && value->get<bool>();
}

std::string JsonObject::text(const std::string& key) {
  const Json* value = take(key, Kind::text);
  if (!value) return "";
  std::string text = value->get<std::string>();
  if (text.find('\0') != std::string::npos) refuse(key, "a string without NUL", describe(value));
  return text;
}

JsonObject JsonObject::object(const std::string& key) {
  static const Json kEmpty = Json::object();
  const Json* value = take(key, Kind::object);
  return JsonObject(value ? *value : kEmpty, where_, path(key));
}

double JsonObject::number(const std::string& key, const Range& range) {
  read_.insert(key);
  const Json* value = find(key);
  const std::optional<double> number = value ? read_double(*value, range, false) : std::nullopt;
  if (!number) refuse(key, expected_number("a number", range), describe(value));
  return *number;
}

int64_t JsonObject::whole(const std::string& key, const Range& range) {
  read_.insert(key);
  const Json* value = find(key);
  const std::optional<double> number = value ? read_double(*value, range, true) : std::nullopt;
  if (!number) refuse(key, expected_number("a whole number", range), describe(value));
  return value->is_number_integer() ? value->get<int64_t>() : static_cast<int64_t>(*number);
}

std::vector<double> JsonObject::numbers(const std::string& key, const Range& range, bool whole) {
  const Json* value = take(key, Kind::list);
  if (!value) refuse(key, name_of_kind(Kind::list), "nothing");
  std::vector<double> numbers;
  for (const Json& item : *value) {
    const std::optional<double> number = read_double(item, range, whole);
    if (!number)
      refuse_item(key, numbers.size(), expected_number(whole ? "a whole number" : "a number", range), describe(&item));
    numbers.push_back(*number);
  }
  return numbers;
}

void JsonObject::skip(const std::string& key, Kind kind) {
  take(key, kind);
}

std::vector<std::string> JsonObject::unread() const {
  std::vector<std::string> paths;
  for (const std::string& key : keys())
    if (!read_.contains(key)) paths.push_back(key.empty() ? path_ + ".\"\"" : path(key));
  return paths;
}

void JsonObject::refuse(const std::string& key, const std::string& expected, const std::string& got,
                        const std::string& hint) const {
  throw UserError({where_, path(key), expected, got, hint});
}

void JsonObject::refuse_item(const std::string& key, size_t index, const std::string& expected,
                             const std::string& got) const {
  throw UserError({where_, fmt::format("{}[{}]", path(key), index), expected, got, ""});
}

}  // namespace megalith
