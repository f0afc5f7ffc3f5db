// Tests rank files of tiktoken, GPT-2's pair of files, and messages about wrong files. file_agreement.py compares ids
// of real files with the libraries.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/base64.h"
#include "text/byte_alphabet.h"
#include "text/unigram_model.h"
#include "text_testing.h"

namespace megalith {
namespace {

using Ids = std::vector<TokenId>;

std::string ranks_with(const std::vector<std::string>& further) {
  std::string lines;
  int rank = 0;
  for (int b = 0; b < 256; b++)
    lines += to_base64(std::string(1, static_cast<char>(b))) + " " + std::to_string(rank++) + "\n";
  for (const auto& token : further) lines += to_base64(token) + " " + std::to_string(rank++) + "\n";
  return lines;
}

TEST(Tiktoken, LowerRanksJoinFirstAndAWholeWordIsItsToken) {
  Folder folder;
  auto tokenizer =
      load_tokenizer(folder.write("small.cl100k.tiktoken", ranks_with({"bc", "ab", "abc", "xyz"})));
  EXPECT_EQ(tokenizer->encode("abcabc"), (Ids{258, 258}));
  EXPECT_EQ(tokenizer->encode("aab"), (Ids{'a', 257}));
  EXPECT_EQ(tokenizer->encode("xyz"), (Ids{259}));  // even though no merge gives this token
  EXPECT_EQ(tokenizer->encode("a<|endoftext|>"), (Ids{'a', 260}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("abc \xFF xyz")), "abc \xFF xyz");
  auto again = parse_tokenizer_json(tokenizer->files().front().second, "tokenizer.json");
  EXPECT_EQ(again->encode("abcab bcx"), tokenizer->encode("abcab bcx"));
}

TEST(Tiktoken, WhatIsUnclearOrWrongIsRefusedByLine) {
  Folder folder;
  auto message = [&](const std::string& name, const std::string& content) {
    return user_error([&] { load_tokenizer(folder.write(name, content)); });
  };
  EXPECT_SAYS(message("mine.tiktoken", ranks_with({})), "256 ranks");
  EXPECT_SAYS(message("gpt2.tiktoken", ranks_with({}) + "YWI= 255\n"), "gpt2.tiktoken:257");
  EXPECT_SAYS(message("gpt2.tiktoken", ranks_with({}) + "Y*I= 256\n"), "base 64");
  EXPECT_SAYS(message("gpt2.tiktoken", ranks_with({}) + "YWI=\n"), "base 64");
  EXPECT_SAYS(message("gpt2.tiktoken", "YWI= 0\n"), "256 bytes");
}

TEST(Gpt2Files, AFolderWithThePairIsATokenizer) {
  nlohmann::json vocab;
  for (int b = 0; b < 256; b++) vocab[to_byte_alphabet(std::string(1, static_cast<char>(b)))] = b;
  vocab["ab"] = 256;
  vocab["<|endoftext|>"] = 257;
  for (auto [first, second] :
       {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    Folder folder;
    folder.write(first, print_json(vocab));
    EXPECT_SAYS(user_error([&] { load_tokenizer(folder / first); }), "merges");
    folder.write(second, "#version: 0.2\na b\n");
    auto tokenizer = load_tokenizer((folder / first).parent_path());
    EXPECT_EQ(tokenizer->encode("ab<|endoftext|>"), (Ids{256, 257}));
    EXPECT_EQ(load_tokenizer(folder / second)->encode("ab"), (Ids{256}));
    folder.write(second, "#version: 0.2\na b\na zz\n");
    EXPECT_SAYS(user_error([&] { load_tokenizer(folder / first); }), std::string(second) + ":3");
  }
}

TEST(TokenizerJson, WhatIsNotJsonIsToldByLineAndColumn) {
  EXPECT_SAYS(user_error([] { parse_tokenizer_json("{\n \"model\": }", "t.json"); }),
              "t.json:2:11: expected JSON, got '}'");
  EXPECT_SAYS(user_error([] { parse_tokenizer_json("{\n \"model\": {", "t.json"); }), "the end of the file");
  EXPECT_SAYS(user_error([] {
                parse_tokenizer_json(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [],)"
                                     R"( "byte_fallback": "yes"}})",
                                     "t.json");
              }),
              "byte_fallback");
}

std::unique_ptr<Tokenizer> unigram(const std::string& vocab, const std::string& unknown) {
  return parse_tokenizer_json(
      R"({"model": {"type": "Unigram", "unk_id": )" + unknown + R"(, "vocab": )" + vocab + "}}", "t.json");
}

TEST(Unigram, TheBestSumWinsAndUnknownNeighboursAreOneToken) {
  const std::string vocab = R"([["<unk>", 0], ["a", -1], ["b", -1], ["ab", -1.5], ["abb", -3.5]])";
  auto tokenizer = unigram(vocab, "0");
  EXPECT_EQ(tokenizer->encode("abb"), (Ids{3, 2}));
  EXPECT_EQ(tokenizer->encode("axyzb\xFF\xFE"), (Ids{1, 0, 2, 0}));
  EXPECT_SAYS(user_error([&] { unigram(vocab, "null")->encode("x"); }), "unk_id");
  EXPECT_SAYS(user_error([&] { unigram(vocab, "5"); }), "unk_id");
  EXPECT_SAYS(user_error([&] { unigram(R"([["a", "b"]])", "0"); }), "score");
}

TEST(Unigram, ALongWordTakesTimeThatGrowsWithItsLength) {
  auto tokenizer = unigram(R"([["<unk>", 0], ["a", -1], ["aa", -1.5], ["aaaa", -2]])", "0");
  EXPECT_EQ(tokenizer->encode(std::string(4 << 20, 'a')).size(), 1u << 20);  // does not finish if the time is quadratic
}

}  // namespace
}  // namespace megalith
