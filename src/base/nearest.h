// Finds the word for "did you mean": the known word with the fewest edits.
#pragma once
#include <span>
#include <string_view>

namespace megalith {

// Number of bytes to insert, delete or replace; two neighbours in the wrong order count as one edit.
int edit_distance(std::string_view a, std::string_view b);

// Returns the nearest candidate, or the first one that `word` abbreviates. Returns an empty text if none is near enough:
// at most a third of the word may be edited, and one edit is always allowed. A far-fetched suggestion is worse than none.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace megalith
