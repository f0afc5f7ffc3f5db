#include "text/char_class.h"

#include <string>

#include "text/regex.h"
#include "text/utf8.h"

namespace megalith {

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

CharClasses::CharClasses() : kinds_(0x110000, other) {
  std::string all;
  all.reserve(4500000);
  for (uint32_t c = 0; c < kinds_.size(); c++)
    if (c < 0xD800 || c > 0xDFFF) append_utf8(all, c);
  auto mark_runs = [&](const char* pattern, Kind kind) {
    Regex regex(pattern, "character classes");
    size_t at = 0;
    while (auto run = regex.find(all, at))
      for (at = run->begin; at < run->end;) {
        CodePoint point = code_point_at(all, at);
        kinds_[point.value] = kind;
        at += point.bytes;
      }
  };
  mark_runs("[\\p{Cc}\\p{Cf}\\p{Co}]+", control);
  // not \\p{M}: Regex adds younger marks to it, which the reference's accent tables do not have
  mark_runs("[\\p{Mn}\\p{Mc}\\p{Me}]+", other_mark);
  mark_runs("\\p{Mn}+", mark);
  mark_runs("\\p{L}+", letter);
  mark_runs("\\p{N}+", number);
  mark_runs("\\p{P}+", punctuation);
  mark_runs("\\s+", space);  // last, because U+0009 to U+000D and U+0085 are also control characters
}

}  // namespace megalith
