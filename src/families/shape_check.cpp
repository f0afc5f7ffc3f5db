#include "families/shape_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/either.h"
#include "base/error.h"
#include "base/join.h"
#include "base/mistakes.h"
#include "families/registry.h"

namespace megalith {
namespace {

void check_heads(const ModelShape& s, const ShapeCheck& check) {
  // No class of Hugging Face has both head_dim and a bias on the output. Only we could read such a checkpoint.
  const bool any_heads = s.head_size > 0 && !s.output_bias;
  check.require(any_heads || s.hidden % s.heads == 0, "model.heads",
                fmt::format("a divisor of model.hidden ({})", s.hidden), fmt::format("{}", s.heads),
                nearby_divisors(s.hidden, s.heads));
  check.require(s.family->uses.kv_heads || s.kv_heads == s.heads, "model.kv_heads",
                fmt::format("model.heads ({}), because model.arch {} has no grouped-query attention", s.heads,
                            s.family->name),
                fmt::format("{}", s.kv_heads), "remove it");
}

void check_token_types(const ModelShape& s, const ShapeCheck& check) {
  if (s.family->uses.token_types)
    check.require(s.token_types >= 1, "model.token_types",
                  fmt::format("at least 1, because model.arch is {}", s.family->name), fmt::format("{}", s.token_types));
  else
    check.require(s.token_types == 0, "model.token_types", fmt::format("0, because model.arch is {}", s.family->name),
                  fmt::format("{}", s.token_types), "remove it");
}

// Checks that fields which the family does not have are at their defaults.
void check_unused_fields(const ModelShape& s, const ShapeCheck& check) {
  Mistakes mistakes;
  auto unused = [&](bool ShapeFields::* field, bool is_default, std::string_view key) {
    mistakes.none_in([&] {
      check.require(s.family->uses.*field || is_default, key, fmt::format("model.arch {}", families_with(field)),
                    fmt::format("model.arch {}", s.family->name), "remove it, or change model.arch");
    });
  };
  unused(&ShapeFields::rope_theta, s.rope_theta == ModelShape{}.rope_theta, "model.rope_theta");
  unused(&ShapeFields::head_dim, s.head_size == 0, "model.head_dim");
  unused(&ShapeFields::qkv_bias, !s.qkv_bias, "model.qkv_bias");
  unused(&ShapeFields::output_bias, !s.output_bias, "model.output_bias");
  mistakes.none_in([&] { check_token_types(s, check); });
  mistakes.throw_any();
}

}  // namespace

void ShapeCheck::require(bool holds, std::string_view key, const std::string& expected, const std::string& got,
                         const std::string& hint) const {
  if (!holds) throw UserError({where_ ? where_(key) : "", std::string(key), expected, got, hint});
}

void ShapeCheck::at_least_1(int64_t value, std::string_view key) const {
  require(value >= 1, key, expected_(key), value == 0 ? "nothing" : fmt::format("{}", value),
          "set it, or choose a model.preset");
}

void check_shape(const ModelShape& shape, const ShapeCheck& check) {
  Mistakes mistakes;
  mistakes.none_in([&] {
    check_heads(shape, check);
    if (shape.family->check) shape.family->check(shape, check);
  });
  mistakes.none_in([&] { check_unused_fields(shape, check); });
  mistakes.throw_any();
}

std::string families_with(bool ShapeFields::* field) {
  return either(family_names([&](const Family& family) { return family.uses.*field; }));
}

std::string nearby_divisors(int64_t number, int64_t wanted) {
  constexpr size_t kShown = 4;
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= number; d++)
    if (number % d == 0) {
      divisors.push_back(d);
      if (d * d != number) divisors.push_back(number / d);
    }
  auto distance = [&](int64_t d) { return std::abs(d - wanted); };
  std::sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
  });
  if (divisors.size() > kShown) divisors.resize(kShown);
  std::sort(divisors.begin(), divisors.end());
  if (divisors.size() == 1) return fmt::format("use {}", divisors[0]);
  return fmt::format("use {} or {}", join(std::span(divisors).first(divisors.size() - 1), ", "), divisors.back());
}

}  // namespace megalith
