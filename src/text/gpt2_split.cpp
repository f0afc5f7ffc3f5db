#include "text/gpt2_split.h"

#include <array>

#include "text/char_class.h"
#include "text/utf8.h"

namespace megalith {
namespace {

enum Group : uint8_t { symbol, letter, number, space };

constexpr std::array<Group, 128> kAscii = [] {
  std::array<Group, 128> groups{};
  for (int c = 0; c < 128; c++)
    groups[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? letter
                : c >= '0' && c <= '9'                           ? number
                : c == ' ' || (c >= 9 && c <= 13)                ? space
                                                                 : symbol;
  return groups;
}();

struct Char {
  Group group;
  uint32_t bytes;
};

inline Char char_at(const CharClasses& classes, std::string_view text, size_t at) {
  auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {kAscii[byte], 1};
  CodePoint point = code_point_at(text, at);
  if (!point.valid()) return {symbol, 1};
  switch (classes.kind(point.value)) {
    case CharClasses::letter:
      return {letter, point.bytes};
    case CharClasses::number:
      return {number, point.bytes};
    case CharClasses::space:
      return {space, point.bytes};
    default:
      return {symbol, point.bytes};
  }
}

// Returns the length in bytes of the contraction at the beginning of `rest` ('s 't 're 've 'm 'll 'd), or 0. `rest`
// begins with an apostrophe.
size_t contraction(std::string_view rest) {
  if (rest.size() < 2) return 0;
  switch (rest[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return rest.size() > 2 && rest[2] == 'e' ? 3 : 0;
    case 'l':
      return rest.size() > 2 && rest[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

}  // namespace

Gpt2Splitter::Gpt2Splitter() : classes_(CharClasses::get()) {}

size_t Gpt2Splitter::word_end(std::string_view text, size_t begin) const {
  if (text[begin] == '\'')
    if (size_t length = contraction(text.substr(begin))) return begin + length;

  Char first = char_at(classes_, text, begin);
  size_t at = begin + first.bytes;
  if (first.group == space) {
    bool joins = text[begin] == ' ' && at < text.size();
    Char next = joins ? char_at(classes_, text, at) : Char{space, 0};
    if (next.group == space) {
      // A run of spaces. The last space belongs to the next word, if a word follows.
      size_t last = begin;
      while (at < text.size()) {
        Char c = char_at(classes_, text, at);
        if (c.group != space) return last > begin ? last : at;
        last = at;
        at += c.bytes;
      }
      return at;
    }
    first = next;
    at += next.bytes;
  }
  while (at < text.size()) {
    auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      if (kAscii[byte] != first.group) break;
      at++;
      continue;
    }
    Char c = char_at(classes_, text, at);
    if (c.group != first.group) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace megalith
