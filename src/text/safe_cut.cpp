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

bool safe(std::string_view text, size_t cut) {
  if (text[cut] == ' ') return ascii_letter(text[cut - 1]) && ascii_letter(text[cut + 1]);
  return text[cut - 1] == '\n' && visible(text, cut) && visible(text, previous_code_point(text, cut - 1));
}

}  // namespace

size_t last_safe_cut(std::string_view text) {
  for (size_t cut = text.size() > kCutTail ? text.size() - kCutTail : 0; cut >= 2; cut--)
    if (safe(text, cut)) return cut;
  return 0;
}

size_t first_safe_cut(std::string_view text, size_t from) {
  for (size_t cut = from < 2 ? 2 : from; cut + kCutTail <= text.size(); cut++)
    if (safe(text, cut)) return cut;
  return 0;
}

size_t last_character_cut(std::string_view text) {
  size_t cut = text.size() - incomplete_suffix(text);
  return cut == 0 ? text.size() : cut;
}

}  // namespace megalith
