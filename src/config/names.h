// Names of enumerated values, in YAML and in messages. The index is the value.
#pragma once
#include <array>
#include <string_view>

#include "base/enum_names.h"
#include "config/config.h"

namespace megalith {

constexpr std::array<std::string_view, kObjectives.size()> names_of(Objective) {
  std::array<std::string_view, kObjectives.size()> words;
  for (size_t i = 0; i < words.size(); i++) words[i] = kObjectives[i].word;
  return words;
}
constexpr std::array<std::string_view, 3> names_of(Pairs) {
  return {"dropout", "columns", "neighbours"};
}
constexpr std::array<std::string_view, 2> names_of(AttentionReach) {
  return {"sequence", "document"};
}
constexpr std::array<std::string_view, kOptimizers.size()> names_of(OptimizerKind) {
  std::array<std::string_view, kOptimizers.size()> words;
  for (size_t i = 0; i < words.size(); i++) words[i] = kOptimizers[i].word;
  return words;
}
constexpr std::array<std::string_view, 5> names_of(Decay) {
  return {"cosine", "linear", "inverse_sqrt", "constant", "wsd"};
}
constexpr std::array<std::string_view, 3> names_of(Counted) {
  return {"steps", "tokens", "layer_tokens"};
}
constexpr std::array<std::string_view, 3> names_of(CurriculumApply) {
  return {"truncate", "reshape", "filter"};
}
constexpr std::array<std::string_view, 2> names_of(DifficultyUnit) {
  return {"value", "percentile"};
}
constexpr std::array<std::string_view, 2> names_of(Hold) {
  return {"sequences", "tokens"};
}
constexpr std::array<std::string_view, 5> names_of(Recompute) {
  return {"auto", "none", "selective", "full", "every"};
}

}  // namespace megalith
