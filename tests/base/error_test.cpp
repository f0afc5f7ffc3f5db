#include "base/error.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Shortened, LeavesWhatIsShortAndSaysHowLongTheRestWas) {
  EXPECT_EQ(shortened("runs/model"), "runs/model");
  EXPECT_EQ(shortened(std::string(300, 'x')), std::string(300, 'x'));
  const std::string text = shortened("begin" + std::string(100000, 'x') + "end");
  EXPECT_LT(text.size(), 300u);
  EXPECT_TRUE(text.starts_with("beginxxx")) << text;
  EXPECT_TRUE(text.ends_with("xxxend (100008 bytes)")) << text;
}

TEST(Shortened, CutsNoCharacterInTwo) {
  for (size_t before = 0; before < 3; before++) {
    std::string text(before, 'a');
    for (int i = 0; i < 200; i++) text += "€";  // three bytes each
    const std::string cut = shortened(text), head = cut.substr(0, cut.find("..."));
    EXPECT_EQ((head.size() - before) % 3, 0u);
    EXPECT_EQ(cut.find("€", head.size() + 3), head.size() + 3);
  }
}

TEST(Shortened, WordsOfATextAreShortenedOneByOne) {
  const std::string table = "does not fit:\n  parameters   3 GiB\n";
  EXPECT_EQ(with_short_words(table), table);
  const std::string lines = with_short_words("cannot read /" + std::string(5000, 'p') + ": name too long\n");
  EXPECT_LT(lines.size(), 400u);
  EXPECT_TRUE(lines.starts_with("cannot read /ppp") && lines.ends_with(" name too long\n")) << lines;
}

TEST(UserError, ShowsLongValuesShortened) {
  const std::string value(100000, 'v'), sentence = [] {
    std::string words;
    for (int i = 0; i < 50000; i++) words += "w ";
    return words;
  }();
  EXPECT_LT(std::string(UserError({value, value, "a name", value, "see " + value}).what()).size(), 1500u);
  EXPECT_LT(std::string(UserError({"run.yaml", "run.dir", "a name", sentence, ""}).what()).size(), 500u);
  EXPECT_EQ(UserError({"", "run.dir", "a name", value, ""}).parts.got, value);
}

}  // namespace
}  // namespace megalith
