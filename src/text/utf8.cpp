#include "text/utf8.h"

#include <algorithm>

namespace megalith {

size_t previous_code_point(std::string_view text, size_t end) {
  for (size_t back = 1; back <= std::min<size_t>(4, end); back++)
    if (CodePoint point = code_point_at(text, end - back); point.valid())
      return point.bytes == back ? end - back : end - 1;
  return end - 1;
}

void append_utf8(std::string& text, uint32_t c) {
  auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t incomplete_suffix(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); back++) {
    auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    size_t wanted = lead >= 0xF0 && lead < 0xF5   ? 4
                    : lead >= 0xE0 && lead < 0xF0 ? 3
                    : lead >= 0xC2 && lead < 0xE0 ? 2
                                                  : 1;
    if (wanted <= back) return 0;
    // The second byte already rules out overlong forms, surrogates and values that are too large.
    if (back >= 2) {
      auto second = static_cast<unsigned char>(text[text.size() - back + 1]);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
          (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
        return 0;
    }
    return back;
  }
  return 0;
}

}  // namespace megalith
