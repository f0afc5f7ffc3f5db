#include "text/utf8.h"

#include "text_testing.h"

namespace megalith {
namespace {

TEST(Utf8, EveryCodePointComesBack) {
  for (uint32_t c = 0; c < 0x110000; c++) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text = "x";
    append_utf8(text, c);
    CodePoint point = code_point_at(text, 1);
    ASSERT_EQ(point.value, c);
    ASSERT_EQ(point.bytes + 1, text.size());
    ASSERT_EQ(previous_code_point(text, text.size()), 1u);
    ASSERT_EQ(incomplete_suffix(text), 0u);
    for (size_t cut = 2; cut < text.size(); cut++) ASSERT_EQ(incomplete_suffix(text.substr(0, cut)), cut - 1);
  }
}

TEST(Utf8, WhatIsNotUtf8IsOneByteAndWillNotBeCompleted) {
  for (std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(code_point_at(bad, 0).valid());
    EXPECT_EQ(code_point_at(bad, 0).bytes, 1u);
    EXPECT_EQ(incomplete_suffix(bad), 0u);
  }
  EXPECT_EQ(incomplete_suffix("\xED\xA0"), 0u) << "half a surrogate is no beginning";
  EXPECT_EQ(incomplete_suffix("\xED\x9F"), 2u);
}

}  // namespace
}  // namespace megalith
