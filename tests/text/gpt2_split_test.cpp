#include "text/gpt2_split.h"

#include <vector>

#include "text/regex.h"
#include "text_testing.h"

namespace megalith {
namespace {

std::vector<std::string> by_hand(std::string_view text) {
  static const Gpt2Splitter splitter;
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = splitter.word_end(text, at);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> by_pattern(std::string_view text) {
  static const Regex pattern(kGpt2Pattern, "test");
  std::vector<std::string> words;
  size_t at = 0;
  while (auto match = pattern.find(text, at)) {
    EXPECT_EQ(match->begin, at) << "the pattern leaves nothing out";
    words.emplace_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  EXPECT_EQ(at, text.size());
  return words;
}

TEST(Gpt2Split, EqualsThePatternOnHostileStrings) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; i++) {
    std::string text = hostile_string(random);
    ASSERT_EQ(by_hand(text), by_pattern(text)) << text;
  }
}

TEST(Gpt2Split, EqualsThePatternAroundEveryCharacter) {
  std::string text;
  for (uint32_t c = 0; c < 0x110000; c++)
    if (c < 0xD800 || c > 0xDFFF) {
      text += c % 3 == 0 ? "a" : c % 3 == 1 ? " " : "1";
      append_utf8(text, c);
    }
  EXPECT_EQ(by_hand(text), by_pattern(text));
}

TEST(Gpt2Split, KeepsTheLastSpaceForTheWordBehindIt) {
  EXPECT_EQ(by_hand("a   b\n\n c'll"), (std::vector<std::string>{"a", "  ", " b", "\n\n", " c", "'ll"}));
  EXPECT_EQ(by_hand("x\n\ny  "), (std::vector<std::string>{"x", "\n", "\n", "y", "  "}));
}

TEST(Gpt2Split, EveryByteStringIsCutWithoutLoss) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; i++) {
    std::string text = hostile_string(random, true), joined;
    for (const auto& word : by_hand(text)) joined += word;
    ASSERT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace megalith
