#include "inference/stop_strings.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace megalith {
namespace {

// The text before the first stop string.
std::string cut(const std::string& text, const std::vector<std::string>& stops) {
  size_t end = std::string::npos;
  for (const std::string& stop : stops) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

TEST(StopStrings, WhatStreamsOutIsTheTextBeforeTheFirstOneHoweverItIsCutUp) {
  const std::vector<std::string> stops{"aab", "ba", "abc\n"};
  Philox random(1, RandomUse::test, 1);
  uint64_t at = 0;
  for (int round = 0; round < 300; round++) {
    std::string text, out;
    for (uint64_t n = random.below(at++, 12); n > 0; n--) text += "abc\nd"[random.below(at++, 5)];
    StopStrings filter(stops);
    for (size_t i = 0; i < text.size();) {
      size_t n = 1 + random.below(at++, 3);
      std::string piece = filter.feed(text.substr(i, n));
      out += piece;
      // Text that was returned must not turn out to be part of a stop string.
      EXPECT_TRUE(cut(text, stops).starts_with(out)) << text;
      i += n;
    }
    out += filter.finish();
    EXPECT_EQ(out, cut(text, stops)) << text;
    EXPECT_EQ(filter.stopped(), out.size() < text.size()) << text;
  }
}

TEST(StopStrings, WithoutAnyTextPassesAtOnce) {
  StopStrings none({});
  EXPECT_EQ(none.feed("a"), "a");
  EXPECT_EQ(none.finish(), "");
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBecomeOne) {
  StopStrings filter({"\n\n"});
  EXPECT_EQ(filter.feed("one\n"), "one");
  EXPECT_EQ(filter.feed("two"), "\ntwo");
  EXPECT_EQ(filter.feed("\n\nthree"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.feed("four"), "");
}

}  // namespace
}  // namespace megalith
