// Tolerant UTF-8: any byte string can be walked. Bytes that are not UTF-8 are returned one by one, marked as invalid.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

struct CodePoint {
  static constexpr uint32_t kInvalid = 0xFFFFFFFF;
  uint32_t value = kInvalid;
  uint32_t bytes = 1;
  bool valid() const { return value != kInvalid; }
};

// Returns the code point at `position` (< text.size()). Overlong forms, surrogates and values above U+10FFFF are
// invalid.
inline CodePoint code_point_at(std::string_view text, size_t position) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[position + i])); };
  size_t left = text.size() - position;
  auto follows = [&](size_t i) { return i < left && (byte(i) & 0xC0) == 0x80; };
  uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && follows(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead >= 0xE0 && lead < 0xF0 && follows(1) && follows(2)) {
    uint32_t value = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && follows(1) && follows(2) && follows(3)) {
    uint32_t value = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {};
}

// Returns the beginning of the code point that ends at `end` (> 0).
size_t previous_code_point(std::string_view text, size_t end);

void append_utf8(std::string& text, uint32_t code_point);

// Returns how many bytes at the end of `text` are the beginning of an incomplete character that more bytes could
// complete: 0 to 3.
size_t incomplete_suffix(std::string_view text);

}  // namespace megalith
