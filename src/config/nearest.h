// Finds the word for "did you mean": the known word with the fewest edits.
#pragma once
#include <span>
#include <string_view>

namespace megalith {

// Levenshtein distance in bytes.
int edit_distance(std::string_view a, std::string_view b);

// Returns the nearest candidate, or an empty text if no candidate is near enough. At most a third of the word may be
// edited; two edits are always allowed.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace megalith
