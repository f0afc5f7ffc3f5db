// Checks the shape of a model.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "families/family.h"

namespace megalith {

// Returns the place ("run.yaml:14") of a key ("train.lr", "curriculum[0].to"), for messages. May be empty: messages
// then have no place.
using WhereOf = std::function<std::string(std::string_view key)>;

class ShapeCheck {
 public:
  // `expected` describes the values that a key accepts ("a whole number from 1").
  ShapeCheck(const WhereOf& where, std::string (*expected)(std::string_view key)) : where_(where), expected_(expected) {}

  // Throws UserError unless the condition holds.
  void require(bool holds, std::string_view key, const std::string& expected, const std::string& got,
               const std::string& hint = "") const;
  void at_least_1(int64_t value, std::string_view key) const;

 private:
  const WhereOf& where_;
  std::string (*expected_)(std::string_view key);
};

// Checks the heads, the family's own rules, and fields that the family does not have. Sizes must already be at least 1.
void check_shape(const ModelShape& shape, const ShapeCheck& check);

// Returns the families that have a field, as a choice: "llama".
std::string families_with(bool ShapeFields::* field);

// Returns the divisors of `number` nearest to `wanted`: "use 4, 6, 8 or 12".
std::string nearby_divisors(int64_t number, int64_t wanted);

}  // namespace megalith
