// GPT-2's byte alphabet: every byte is a printable character, so that vocabularies of bytes can be written as text.
// Printable Latin-1 characters stand for themselves. The other 68 bytes are U+0100, U+0101, ... in order (openai/gpt-2,
// src/encoder.py).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace megalith {

inline constexpr std::array<uint32_t, 256> kByteToChar = [] {
  std::array<uint32_t, 256> chars{};
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; b++) {
    bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    chars[b] = printable ? b : next++;
  }
  return chars;
}();

inline std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (char c : bytes) append_utf8(text, kByteToChar[static_cast<unsigned char>(c)]);
  return text;
}

// Returns nothing if a character is not in the alphabet.
inline std::optional<std::string> from_byte_alphabet(std::string_view text) {
  static constexpr std::array<int16_t, 0x144> kCharToByte = [] {
    std::array<int16_t, 0x144> bytes{};
    for (auto& b : bytes) b = -1;
    for (int16_t b = 0; b < 256; b++) bytes[kByteToChar[static_cast<size_t>(b)]] = b;
    return bytes;
  }();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    CodePoint point = code_point_at(text, at);
    if (point.value >= kCharToByte.size() || kCharToByte[point.value] < 0) return std::nullopt;
    out += static_cast<char>(kCharToByte[point.value]);
    at += point.bytes;
  }
  return out;
}

}  // namespace megalith
