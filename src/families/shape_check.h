// Checks of a model's shape, and the messages of those that fail.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "families/family.h"

namespace megalith {

// Where a key ("train.lr", "curriculum[0].to") was written ("run.yaml:14"), for messages; an empty function knows no places.
using WhereOf = std::function<std::string(std::string_view key)>;

class ShapeCheck {
 public:
  // `expected` describes the values that a key takes ("a whole number from 1").
  ShapeCheck(const WhereOf& where, std::string (*expected)(std::string_view key)) : where_(where), expected_(expected) {}

  // Throws UserError unless the condition holds.
  void require(bool holds, std::string_view key, const std::string& expected, const std::string& got,
               const std::string& hint = "") const;
  void at_least_1(int64_t value, std::string_view key) const;

 private:
  const WhereOf& where_;
  std::string (*expected_)(std::string_view key);
};

// Heads, the family's own checks, and fields that the family does not have. Sizes are at least 1.
void check_shape(const ModelShape& shape, const ShapeCheck& check);

// "llama": the families that have a field, as a choice.
std::string families_with(bool ShapeFields::* field);

// "use 4, 6, 8 or 12": the divisors of `number` nearest to `wanted`.
std::string nearby_divisors(int64_t number, int64_t wanted);

}  // namespace megalith
