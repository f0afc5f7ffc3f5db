// "Did you mean": the known word that takes the fewest edits.
#pragma once
#include <span>
#include <string_view>

namespace megalith {

// Levenshtein distance in bytes.
int edit_distance(std::string_view a, std::string_view b);

// The nearest candidate; empty when none is near enough to be meant (more than a third of the word edited, at
// least two edits allowed).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace megalith
