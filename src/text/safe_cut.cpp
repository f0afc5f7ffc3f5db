#include "text/safe_cut.h"

#include "text/char_class.h"
#include "text/utf8.h"

namespace megalith {
namespace {

bool ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool visible(std::string_view text, size_t at) {
  CodePoint point = code_point_at(text, at);
  return point.valid() && CharClasses::get().kind(point.value) != CharClasses::space;
}

bool before_space(std::string_view text, size_t cut) {
  return ascii_letter(text[cut - 1]) && ((text[cut] == ' ' && ascii_letter(text[cut + 1])) ||
                                         (text[cut] == '\n' && visible(text, cut + 1)));
}

bool behind_line_feed(std::string_view text, size_t cut) {
  return text[cut - 1] == '\n' && visible(text, cut) && visible(text, previous_code_point(text, cut - 1));
}

}  // namespace

size_t last_safe_cut(std::string_view text) {
  const size_t last = text.size() > kCutTail ? text.size() - kCutTail : 0;
  for (size_t cut = last; cut >= 2; cut--)
    if (before_space(text, cut)) return cut;
  for (size_t cut = last; cut >= 2; cut--)
    if (behind_line_feed(text, cut)) return cut;
  return 0;
}

size_t first_safe_cut(std::string_view text, size_t from) {
  for (size_t cut = from < 2 ? 2 : from; cut + kCutTail <= text.size(); cut++)
    if (before_space(text, cut) || behind_line_feed(text, cut)) return cut;
  return 0;
}

size_t last_character_cut(std::string_view text) {
  size_t cut = text.size() - incomplete_suffix(text);
  return cut == 0 ? text.size() : cut;
}

}  // namespace megalith
