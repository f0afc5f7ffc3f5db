// Tests SentencePiece files made by hand. file_agreement.py compares ids of real files with the library.
#include <cstring>

#include "text/base64.h"
#include "text/safe_cut.h"
#include "text/sentencepiece_tokenizer.h"
#include "text_testing.h"

namespace megalith {
namespace {

using Ids = std::vector<TokenId>;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
std::string bytes(int field, const std::string& content) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(content.size()) + content;
}
std::string piece(const std::string& text, float score, uint64_t type = 1) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return bytes(1, bytes(1, text) + varint(2 << 3 | 5) + bits + number(3, type));
}

const std::string kControls = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
// Unigram: "ab" has a higher score than "a" plus "b".
const std::string kUnigram = kControls + piece("\u2581", -2) + piece("a", -3) + piece("b", -3) +
                             piece("ab", -4) + piece("\u2581a", -4) + bytes(2, number(3, 1));

std::unique_ptr<Tokenizer> load(const std::string& model) {
  Folder folder;
  return load_tokenizer(folder.write("m.model", model));
}

TEST(SentencePiece, TheBestCutIsTakenAndUnknownCharactersAreOneToken) {
  auto tokenizer = load(kUnigram);
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{3, 6}));       // -6: better than "▁a" + "b" at -7
  EXPECT_EQ(tokenizer->encode("  a  a "), (Ids{7, 7}));  // spaces at the ends are removed, runs become one space
  EXPECT_EQ(tokenizer->encode("axyb"), (Ids{7, 0, 5}));
  EXPECT_EQ(tokenizer->encode("</s>"), (Ids{3, 0}));  // control pieces written in the text are plain text
  EXPECT_EQ(tokenizer->encode("").size() + tokenizer->encode("   ").size(), 0u);
  EXPECT_EQ(tokenizer->decode(Ids{1, 7, 5, 3, 6, 0, 2}), "ab ab \u2047 ");
  EXPECT_EQ(tokenizer->begin_token(), 1);
  EXPECT_EQ(tokenizer->end_token(), 2);
  EXPECT_TRUE(tokenizer->starts_word(7) && !tokenizer->starts_word(6) && tokenizer->is_special(2));
}

TEST(SentencePiece, APieceThatGoesOnHasNoMarkInFront) {
  auto tokenizer = load(kUnigram);
  EXPECT_EQ(tokenizer->encode_continued("ab"), (Ids{6}));
  EXPECT_EQ(tokenizer->encode_continued(" ab"), (Ids{3, 6}));
}

TEST(SentencePiece, ADocumentInPartsGivesTheIdsOfTheWhole) {
  auto tokenizer = load(kUnigram);
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; i++) {
    const std::vector<std::string> parts{"a", "b", " ", "ab", "\n"};
    std::string text;
    for (int n = 0; n < 60; n++) text += parts[random() % parts.size()];
    size_t cut = last_safe_cut(text);
    if (cut == 0) continue;
    Ids ids = tokenizer->encode(text.substr(0, cut)), rest = tokenizer->encode_continued(text.substr(cut));
    ids.insert(ids.end(), rest.begin(), rest.end());
    ASSERT_EQ(ids, tokenizer->encode(text)) << text;
  }
}

TEST(SentencePiece, EqualScoresJoinFromTheLeft) {
  // "aaa" can be made of "aa" + "a" or of "a" + "aa": the leftmost pair joins first.
  auto tokenizer = load(kControls + piece("\u2581", -9) + piece("a", -9) + piece("aa", -1) +
                        piece("aaa", -2) + bytes(2, number(3, 2)));
  EXPECT_EQ(tokenizer->encode("aaaaa"), (Ids{3, 5, 6}));
}

TEST(SentencePiece, ACheckpointsTokenizerJsonIsTheSameTokenizer) {
  auto tokenizer = load(kUnigram);
  auto files = tokenizer->files();
  ASSERT_EQ(files.front().first, "tokenizer.json");
  auto again = parse_tokenizer_json(files.front().second, "tokenizer.json");
  EXPECT_EQ(again->encode("ab a xy"), tokenizer->encode("ab a xy"));
  EXPECT_EQ(again->files(), files);
}

TEST(SentencePiece, WhatIsTornForeignOrOfAnotherKindIsRefused) {
  for (size_t size = 0; size < kUnigram.size(); size++) {
    try {
      load(kUnigram.substr(0, size));
    } catch (const UserError&) {  // a file that is cut between two pieces is a valid smaller file
    }
  }
  EXPECT_SAYS(user_error([&] { load(kUnigram.substr(0, kUnigram.size() - 1)); }), "truncated");
  EXPECT_SAYS(user_error([&] { load("this is no model at all"); }), "a SentencePiece model");
  EXPECT_SAYS(user_error([&] { load(""); }), "a SentencePiece model");
  EXPECT_SAYS(user_error([&] { load(kControls + bytes(2, number(3, 3))); }), "word");
  EXPECT_SAYS(user_error([&] { load(kUnigram + bytes(2, number(24, 1))); }), "treat_whitespace_as_suffix");
  EXPECT_SAYS(user_error([&] { load(kUnigram + piece("a", -1)); }), "pieces that are unique");
  EXPECT_SAYS(user_error([&] { load(kUnigram + bytes(3, bytes(2, "abc"))); }), "precompiled_charsmap");
  EXPECT_SAYS(user_error([&] { load(kUnigram + bytes(2, number(35, 1))); }), "<0x00>");
}

// A damaged rewriting table must never be read out of bounds.
TEST(SentencePiece, RandomRewritingTablesNeverCrash) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; i++) {
    std::string table(4 + 4 * (random() % 300) + random() % 50, '\0');
    for (char& c : table) c = static_cast<char>(random());
    auto units = static_cast<uint32_t>((table.size() - 4) / 4 * 4);
    if (units == 0) continue;
    std::memcpy(table.data(), &units, 4);
    Charsmap rules(table, "table");
    for (int j = 0; j < 50; j++) {
      std::string text = hostile_string(random, true);
      rules.longest(text);
      rules.shortest(text);
    }
  }
}

TEST(Base64, RoundTripsAndRefusesWhatIsNot) {
  std::mt19937_64 random(6);
  for (size_t size = 0; size < 40; size++) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(from_base64(to_base64(text)), text);
  }
  EXPECT_EQ(to_base64("Man"), "TWFu");
  EXPECT_EQ(to_base64("Ma"), "TWE=");
  EXPECT_FALSE(from_base64("T*Fu") || from_base64("TWFuT"));
}

}  // namespace
}  // namespace megalith
