// Characters that the reference's tables for Unicode normalisation do not know yet.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace megalith {

// Those younger than Unicode 9 that decompose or have a combining class today. Hugging Face's `tokenizers`
// leaves them as they are, like any unassigned character. Found by asking it (0.23) about every code point of
// Unicode 14 and about its order of marks; those of Unicode 15 from the character database.
inline bool too_young_to_normalize(uint32_t c) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kYoung[] = {
      {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
      {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
      {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},
      {0x10781, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
      {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
      {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
      {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
      {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
      {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};
  if (c < kYoung[0].first) return false;
  const Range* after = std::upper_bound(std::begin(kYoung), std::end(kYoung), c,
                                        [](uint32_t x, const Range& range) { return x < range.first; });
  return c <= (after - 1)->last;
}

}  // namespace megalith
