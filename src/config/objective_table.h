// The objectives, one row each. Options, messages, planner and data read the row; they never compare names. To add an
// objective, add an enumerator and a row here, and a class and a row in data/objectives.cpp.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace megalith {

enum class Objective { causal, masked, prefix, spans, contrastive };  // in the order of the rows

// Families, by what their positions see: earlier positions, or all. `either` means both kinds.
enum class Attending { causally, both_ways, either };

struct ObjectiveRow {
  Objective kind;
  std::string_view word;       // objective.kind
  std::string_view predicted;  // the predicted tokens; part of a sentence of the reference
  Attending families = Attending::causally;
  bool predicts_next = true;   // the target of a position is the next token
  bool has_prefix = false;     // the first positions of each sequence see each other
  bool needs_mask = false;     // replaces tokens by the tokenizer's mask token
  bool few_targets = false;    // most positions have no target
  bool moves_text = false;     // spans of text are replaced by the tokenizer's sentinels, and follow at the end
  bool compares = false;       // the loss compares the sequences of a batch; there are no targets
  bool random = false;         // inputs or targets are random and depend on the seed
};

inline constexpr auto kObjectives = std::to_array<ObjectiveRow>({
    {.kind = Objective::causal, .word = "causal", .predicted = "the next token"},
    {.kind = Objective::masked,
     .word = "masked",
     .predicted = "masked tokens (bert)",
     .families = Attending::both_ways,
     .predicts_next = false,
     .needs_mask = true,
     .few_targets = true,
     .random = true},
    {.kind = Objective::prefix,
     .word = "prefix",
     .predicted = "the next token, after a prefix whose tokens all see each other",
     .has_prefix = true,
     .random = true},
    {.kind = Objective::spans,
     .word = "spans",
     .predicted = "spans that are missing in a text (T5 for decoders)",
     .predicts_next = false,
     .has_prefix = true,
     .few_targets = true,
     .moves_text = true,
     .random = true},
    {.kind = Objective::contrastive,
     .word = "contrastive",
     .predicted = "which two sequences of a batch belong together",
     .families = Attending::either,
     .predicts_next = false,
     .compares = true},
});
static_assert([] {
  for (size_t i = 0; i < kObjectives.size(); i++)
    if (kObjectives[i].kind != static_cast<Objective>(i)) return false;
  return true;
}(), "rows stand in the order of Objective");

// True if models whose positions see later positions (`bidirectional`), or other models, can train for the objective.
constexpr bool fits(const ObjectiveRow& row, bool bidirectional) {
  return row.families == Attending::either || bidirectional == (row.families == Attending::both_ways);
}

constexpr const ObjectiveRow& row_of(Objective kind) { return kObjectives[static_cast<size_t>(kind)]; }

// Returns the words of the objectives for which `chosen` is true, for messages.
template <class Chosen>
std::vector<std::string_view> objective_words(const Chosen& chosen) {
  std::vector<std::string_view> words;
  for (const ObjectiveRow& row : kObjectives)
    if (chosen(row)) words.push_back(row.word);
  return words;
}

}  // namespace megalith
