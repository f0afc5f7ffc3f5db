#include "families/hf_fields.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/join.h"
#include "base/json.h"

namespace megalith {

using nlohmann::json;

void HfFields::refuse(const std::string& key, const std::string& expected, const std::string& hint) const {
  std::string got = has(key) ? print_ascii_json(at(key)) : "nothing";
  if (got.size() > 100) got = got.substr(0, 100) + "...";
  throw UserError({where_, path_ + key, expected, got, hint});
}

bool HfFields::has(const std::string& key) const { return object_.contains(key) && !object_.at(key).is_null(); }
bool HfFields::given(const std::string& key) const { return object_.contains(key); }
const json& HfFields::at(const std::string& key) const { return object_.at(key); }

std::string HfFields::text(const std::string& key) const {
  return has(key) && at(key).is_string() ? at(key).get<std::string>() : "";
}

HfFields HfFields::inside(const std::string& key) const {
  if (!at(key).is_object()) refuse(key, "an object");
  return HfFields(at(key), where_, path_ + key + ".");
}

int64_t HfFields::count(const std::string& key) const {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (!has(key) || !at(key).is_number_integer() || at(key) < 1 || at(key) > most)
    refuse(key, fmt::format("a whole number from 1 to {}", most));
  return at(key).get<int64_t>();
}

int64_t HfFields::count_or(const std::string& key, int64_t otherwise) const {
  return has(key) ? count(key) : otherwise;
}

double HfFields::number_or(const std::string& key, double otherwise, double low, double high) const {
  if (!has(key)) return otherwise;
  if (!at(key).is_number() || !(at(key).get<double>() >= low && at(key).get<double>() <= high))
    refuse(key, fmt::format("a number from {} to {}", low, high));
  return at(key).get<double>();
}

double HfFields::rate_or(const std::string& key, double otherwise) const {
  double rate = number_or(key, otherwise, 0, 1);
  if (rate == 1) refuse(key, "a rate from 0 to less than 1");
  return rate;
}

bool HfFields::flag_or(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!at(key).is_boolean()) refuse(key, "true or false");
  return at(key).get<bool>();
}

void HfFields::must_be(const std::string& key, const json& only, const std::string& why) const {
  if (has(key) && at(key) != only) refuse(key, print_json(only), why);
}

void HfFields::must_be_one_of(const std::string& key, std::initializer_list<const char*> names) const {
  if (!has(key)) return;
  for (const char* name : names)
    if (at(key) == name) return;
  refuse(key, join(std::vector<std::string_view>(names.begin(), names.end()), " or "),
         "other activation functions are not supported");
}

void HfFields::must_be_absent(const std::string& key, const std::string& why) const {
  if (has(key)) refuse(key, "null", why);
}

void write_dropout(const ModelShape& shape, nlohmann::ordered_json& config) {
  if (shape.dropout.embedding == 0 && shape.dropout.residual == 0) return;
  config["megalith_dropout"] = {{"embedding", shape.dropout.embedding}, {"residual", shape.dropout.residual}};
}

}  // namespace megalith
