#include "config/yaml.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "config/errors.h"

namespace megalith {
namespace {

std::string bad(std::string_view text) {
  return complaint([&] { parse_yaml(text, "f.yaml"); });
}

}  // namespace

TEST(Yaml, TreeKeepsOrderTextAndLines) {
  Yaml tree = parse_yaml("b: 1\na:\n  - x\n  - {c: 'q d'}\nn:\n", "f.yaml");
  ASSERT_EQ(tree.kind, Yaml::Kind::map);
  ASSERT_EQ(tree.entries.size(), 3u);
  EXPECT_EQ(tree.entries[0].first, "b");
  EXPECT_EQ(tree.entries[0].second.text, "1");
  EXPECT_EQ(tree.entries[1].second.where, "f.yaml:2");  // line of the key, not of the first item
  EXPECT_EQ(tree.entries[1].second.items[0].where, "f.yaml:3");
  EXPECT_EQ(tree.entries[1].second.items[1].entries[0].second.text, "q d");
  EXPECT_EQ(tree.entries[2].second.kind, Yaml::Kind::null);
}

TEST(Yaml, EmptyTextIsNothing) {
  EXPECT_EQ(parse_yaml("", "f.yaml").kind, Yaml::Kind::null);
  EXPECT_EQ(parse_yaml("# only a comment\n", "f.yaml").kind, Yaml::Kind::null);
}

TEST(Yaml, MalformedTextIsRefusedWithItsLine) {
  EXPECT_EQ(bad("a: 1\nb: [1, 2\n").substr(0, 37), "f.yaml:3: expected a closing bracket;");
  EXPECT_EQ(bad("a: *x\n").substr(0, 37), "f.yaml:1: expected well-formed YAML; ");
}

TEST(Yaml, ADirectiveIsNoEmptyFile) {
  EXPECT_EQ(bad("%").substr(0, 37), "f.yaml:1: expected well-formed YAML, ");
  EXPECT_EQ(bad("# comment\n%YAML 1.2\n").substr(0, 37), "f.yaml:1: expected well-formed YAML, ");
  EXPECT_EQ(parse_yaml("%YAML 1.2\n---\na: 1\n", "f.yaml").kind, Yaml::Kind::map);
}

TEST(Yaml, RepeatedKeysAreRefusedNamingTheFirst) {
  EXPECT_EQ(bad("a: 1\nb: 2\na: 3\n"),
            "f.yaml:3: a: expected each key once, got a second value; remove one; the first is at f.yaml:1");
}

TEST(Yaml, AnchorsTagsDocumentsAndOddKeysAreRefused) {
  EXPECT_NE(bad("a: &x 1\nb: *x\n").find("f.yaml:1: expected plain values, got an anchor"),
            std::string::npos);
  EXPECT_NE(bad("a: !!binary aGk=\n").find("the tag tag:yaml.org,2002:binary"), std::string::npos);
  EXPECT_NE(bad("a: 1\n---\nb: 2\n").find("one YAML document"), std::string::npos);
  EXPECT_NE(bad("? [a, b]\n: 1\n").find("a word as key, got [a, b]"), std::string::npos);
}

TEST(Yaml, BytesThatAreNotTextAreRefusedWithTheirLine) {
  EXPECT_EQ(bad("a: 1\nb: \xff\n"),
            "f.yaml:2: expected text in UTF-8, got the byte 0xff; save the file as UTF-8");
  for (std::string_view text : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_NE(bad(text).find("UTF-8"), std::string::npos);
  EXPECT_NE(bad(std::string_view("\0a", 2)).find("0x00"), std::string::npos);
  EXPECT_NE(bad("a: \x04").find("0x04"), std::string::npos);
  EXPECT_EQ(parse_yaml("\xf0\x9f\x98\x80", "f.yaml").text, "\xf0\x9f\x98\x80");
}

TEST(Yaml, HostileSizesAndDepthsAreRefused) {
  EXPECT_NE(bad(std::string((1 << 20) + 1, 'a')).find("at most 1 MiB"), std::string::npos);
  EXPECT_NE(bad(std::string(1 << 20, '[')).find("levels of nesting"), std::string::npos);
  EXPECT_NE(bad(std::string(100000, '{')).find("levels of nesting"), std::string::npos);
  std::string dashes, many;
  for (int i = 0; i < 100000; i++) dashes += "- ";
  for (int i = 0; i < 2000; i++) many += fmt::format("k{}: 1\n", i);
  EXPECT_NE(bad(dashes).find("levels of nesting"), std::string::npos);
  EXPECT_NE(bad(many).find("at most 1000 keys"), std::string::npos);
}

TEST(Yaml, QuotedTextReadsBackEqual) {
  std::vector<std::string> texts{"",
                                 "a",
                                 "null",
                                 "~",
                                 "true",
                                 "- a",
                                 "a: b",
                                 "#x",
                                 "*.txt",
                                 "...",
                                 "---",
                                 "a\nb\tc",
                                 "\"q\" \\ 'r'",
                                 " lead",
                                 "trail ",
                                 "ünï\xe2\x80\xa8"
                                 "codé",
                                 "%x",
                                 "@x",
                                 "\x01\x7f",
                                 "\xef\xbb\xbfx"};
  Philox random(1, RandomUse::test, 0);
  for (uint64_t i = 0; i < 500; i++) {  // any ASCII, including control characters
    std::string text;
    for (uint64_t j = 0; j < i % 12; j++) text += static_cast<char>(random.below(i * 16 + j, 128));
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    Yaml list = parse_yaml(fmt::format("k: [{0}, {0}]\n", quote_yaml(text)), "f.yaml");
    ASSERT_EQ(list.entries.at(0).second.items.size(), 2u) << quote_yaml(text);
    EXPECT_EQ(list.entries[0].second.items[1].text, text);
  }
}

}  // namespace megalith
