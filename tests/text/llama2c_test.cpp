#include "text/llama2c.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/stream_decoder.h"
#include "text_testing.h"

namespace megalith {
namespace {

using Ids = std::vector<TokenId>;

std::string piece(const std::string& text, float score) {
  std::string bytes(8, '\0');
  auto length = static_cast<int32_t>(text.size());
  std::memcpy(bytes.data(), &score, 4);
  std::memcpy(bytes.data() + 4, &length, 4);
  return bytes + text;
}

// Returns a file with <unk>, <s>, </s>, 256 bytes, then words.
std::string small_file() {
  std::string bytes("\7\0\0\0", 4);
  bytes += piece("<unk>", 0) + piece("\n<s>\n", 0) + piece("\n</s>\n", 0);
  for (int b = 0; b < 256; b++) bytes += piece(fmt::format("<0x{:02X}>", b), 0);
  float score = 0;
  for (const char* text : {" a", "ab", " ab", " ", "a", "b"}) bytes += piece(text, score--);
  return bytes;
}

TEST(Llama2c, StoriesTokenizerGivesTheGoldenTextAndIds) {
  SKIP_WITHOUT_SHARED("stories260K_tok512.bin");
  SKIP_WITHOUT_SHARED("stories260K_golden.json");
  auto golden = parse_json(read_file(shared_corpus("stories260K_golden.json")));
  auto tokenizer = parse_tokenizer_json(
      tokenizer_from_llama2c(read_file(shared_corpus("stories260K_tok512.bin")), 512), "tok512");
  auto ids = golden["greedy_tokens"].get<Ids>();
  auto text = golden["greedy_text"].get<std::string>();
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(tokenizer->encode(text, true), ids);
  StreamDecoder stream(*tokenizer);
  std::string streamed;
  for (TokenId id : ids) streamed += stream.feed(id);
  EXPECT_EQ(streamed + stream.finish(), text);
}

TEST(Llama2c, TheBestScoreIsJoinedFirst) {
  auto tokenizer = parse_tokenizer_json(tokenizer_from_llama2c(small_file(), 265), "small");
  EXPECT_EQ(tokenizer->encode("ab", true), (Ids{1, 261})) << "\" a\" + b scores best, and makes \" ab\"";
  EXPECT_EQ(tokenizer->encode("bab"), (Ids{262, 264, 260}));
  EXPECT_EQ(tokenizer->encode("\n\u00e9"), (Ids{262, 3 + 10, 3 + 0xC3, 3 + 0xA9}))
      << "unknown characters are bytes";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("b ab\n\u00e9 ")), "b ab\n\u00e9 ");
  EXPECT_EQ(tokenizer->encode_continued(" ab"), (Ids{261})) << "what goes on gets no space of its own";
  EXPECT_EQ(tokenizer->begin_token(), 1);
  EXPECT_EQ(tokenizer->end_token(), 2);
  EXPECT_TRUE(tokenizer->starts_word(261) && !tokenizer->starts_word(260));
}

TEST(Llama2c, AFileThatDoesNotFitIsRefused) {
  auto message = [](const std::string& bytes, int64_t vocab) {
    return user_error([&] { tokenizer_from_llama2c(bytes, vocab, "t.bin"); });
  };
  EXPECT_SAYS(message(small_file(), 300), "t.bin: pieces: expected 300 (the model's vocabulary), got 265");
  EXPECT_SAYS(message(small_file() + "x", 265),
              "expected complete pieces up to the end of the file, got a truncated piece");
  EXPECT_SAYS(message(small_file() + piece("muchlonger", 0), 266),
              "piece 265: expected a length up to 7, got 10");
  EXPECT_SAYS(message(small_file() + piece("ab", 0), 266), "a piece that occurs once");
  EXPECT_SAYS(message("", 265), "truncated");
}

}  // namespace
}  // namespace megalith
