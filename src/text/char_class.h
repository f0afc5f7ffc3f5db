// Looks up the kind of character of a code point in a table. The table is filled from PCRE2 at first use, so that
// hand-written splitters and patterns agree on \p{L}, \p{N}, \p{P} and \s.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

class CharClasses {
 public:
  enum Kind : uint8_t {
    other,
    letter,
    number,
    space,
    punctuation,
    mark,  // marks without width: accents
    other_mark,
    control,  // also format characters and private use
  };

  static const CharClasses& get();

  Kind kind(uint32_t code_point) const {
    return code_point < kinds_.size() ? static_cast<Kind>(kinds_[code_point]) : other;
  }
  bool is_space(uint32_t code_point) const { return kind(code_point) == space; }

 private:
  CharClasses();
  std::vector<uint8_t> kinds_;  // one per code point
};

}  // namespace megalith
