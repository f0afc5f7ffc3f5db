#include "text/bert_chars.h"

#include "text/char_ranges.h"

namespace megalith {
namespace {

// Punctuation, marks and format characters that are younger than Unicode 8 lie in these ranges; older ones do not.
// Found by testing every code point of Unicode 14 with the reference (tokenizers 0.23).
constexpr CharRange kYoung[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0x180F, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},   {0xA82C, 0xA82C},
    {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F89}, {0x11070, 0x11074},
    {0x110C2, 0x110CD}, {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x1133B, 0x1133B}, {0x11438, 0x1145E},
    {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF}, {0x12FF1, 0x13438}, {0x16E97, 0x16F4F},
    {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E2EF}, {0x1E944, 0x1E95F}};

constexpr CharRange kChinese[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                              {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

}  // namespace

BertKind bert_kind(uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r' || c == ' ') return BertKind::space;
  if (c < 0x20 || c == 0x7F || c == 0x85 || c == 0xFFFD || c > 0x10FFFF) return BertKind::dropped;
  auto kind = CharClasses::get().kind(c);
  if (c < 0x80)
    return kind == CharClasses::letter || kind == CharClasses::number ? BertKind::plain
                                                                      : BertKind::punctuation;
  if (c == 0x166D || c == 0x111C9) return BertKind::punctuation;  // the category of these three has changed since Unicode 8
  if (c == 0x1734) return BertKind::mark;
  switch (kind) {
    case CharClasses::space:
      return BertKind::space;
    case CharClasses::control:
      return in_ranges(kYoung, c) ? BertKind::plain : BertKind::dropped;
    case CharClasses::mark:
      return in_ranges(kYoung, c) ? BertKind::plain : BertKind::mark;
    case CharClasses::punctuation:
      return in_ranges(kYoung, c) ? BertKind::plain : BertKind::punctuation;
    default:
      return BertKind::plain;
  }
}

bool bert_is_chinese(uint32_t c) {
  return in_ranges(kChinese, c);
}

}  // namespace megalith
