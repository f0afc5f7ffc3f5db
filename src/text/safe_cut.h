// Finds places to cut a long text, so that tokenizing the parts one by one gives the ids of the whole text.
#pragma once
#include <cstddef>
#include <string_view>

namespace megalith {

// Returns the last place in (0, text.size()) where no tokenizer family joins the two sides, or 0 if no place is safe.
// These places are safe:
//  - Before a single space between two ASCII letters, or before a line feed between an ASCII letter and another visible
//    character. The first part then has no space at its end, so a tokenizer that trims spaces does not change it.
//  - Only if there is no such place: after a line feed between two visible characters. The line feed may belong to the
//    punctuation before it, but no token crosses this place. (A tokenizer that trims spaces at the end would lose a
//    line feed that it counts as a space.)
// The rule looks at the character after the cut, so no safe place is in the last kCutTail bytes of the text.
inline constexpr size_t kCutTail = 4;
size_t last_safe_cut(std::string_view text);
// Returns the first safe place of either kind at or after `from`, or 0 if no place is safe.
size_t first_safe_cut(std::string_view text, size_t from);

// Returns the last place between two characters. Used for a text without a safe place.
size_t last_character_cut(std::string_view text);

}  // namespace megalith
