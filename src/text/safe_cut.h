// Where a long text may be cut so that tokenizing the parts one by one gives the ids of the whole.
#pragma once
#include <cstddef>
#include <string_view>

namespace megalith {

// The last place in (0, text.size()) where no tokenizer family joins the two sides; 0 if there is none. Such
// places are
//  - before a single space between two ASCII letters, or a line feed between an ASCII letter and another
//    visible character (what trims spaces at the end of a text finds none at the end of a part), and
//  - only where there is no such place, behind a line feed between two visible characters: it may belong to
//    the punctuation before it, but nothing joins across this place. (Trimming would lose it where it counts
//    as a space.)
// The character after the cut is part of the rule, so the last kCutTail bytes of the text hold no such place.
inline constexpr size_t kCutTail = 4;
size_t last_safe_cut(std::string_view text);
// The first place of either kind at or behind `from`; 0 if there is none.
size_t first_safe_cut(std::string_view text, size_t from);

// The last place between two characters: where a text without any safe place is cut.
size_t last_character_cut(std::string_view text);

}  // namespace megalith
