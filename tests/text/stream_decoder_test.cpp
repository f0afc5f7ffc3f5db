#include "text/stream_decoder.h"

#include <nlohmann/json.hpp>

#include "text_testing.h"

namespace megalith {
namespace {

std::unique_ptr<Tokenizer> wordpiece() {
  Folder folder;
  return load_tokenizer(folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nwant\n##ed\n,\n.\nmore\n"));
}

TEST(StreamDecoder, PiecesJoinedAreTheWholeAndNeverHalfACharacter) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; i++) {
    auto ids = small_tokenizer().encode(hostile_string(random));
    StreamDecoder stream(small_tokenizer());
    std::string joined;
    for (TokenId id : ids) {
      std::string piece = stream.feed(id);
      EXPECT_EQ(incomplete_suffix(piece), 0u);
      joined += piece;
    }
    ASSERT_EQ(joined + stream.finish(), small_tokenizer().decode(ids));
  }
}

TEST(StreamDecoder, BytesThatWillNeverBeACharacterStillComeOut) {
  std::mt19937_64 random(2);
  std::vector<TokenId> ids(300);
  for (auto& id : ids)
    id = static_cast<TokenId>(random() % static_cast<uint64_t>(small_tokenizer().vocab_size()));
  StreamDecoder stream(small_tokenizer(), true);
  std::string joined;
  for (TokenId id : ids) joined += stream.feed(id);
  EXPECT_EQ(joined + stream.finish(), small_tokenizer().decode(ids, true));
}

TEST(StreamDecoder, ACharacterWaitsForItsLastByte) {
  const Tokenizer& t = small_tokenizer();
  std::vector<TokenId> ids;
  for (const char* byte : {"\xF0", "\x9F", "\x99", "\x82"}) ids.push_back(t.encode(byte).at(0));
  StreamDecoder stream(t);
  for (size_t i = 0; i < 3; i++) EXPECT_EQ(stream.feed(ids[i]), "");
  EXPECT_EQ(stream.feed(ids[3]), "\U0001F642");
  stream.feed(ids[0]);
  EXPECT_EQ(stream.finish(), "\xF0");
}

TEST(StreamDecoder, ThePromptDecidesAboutTheLeadingSpace) {
  auto tokenizer = wordpiece();
  auto prompt = tokenizer->encode("want", true), rest = tokenizer->encode("wanted more.");
  StreamDecoder alone(*tokenizer), after(*tokenizer);
  after.skip(prompt);
  std::string without, with;
  for (TokenId id : rest) {
    without += alone.feed(id);
    with += after.feed(id);
  }
  EXPECT_EQ(without, "wanted more.");
  EXPECT_EQ(with, " wanted more.");
}

}  // namespace
}  // namespace megalith
