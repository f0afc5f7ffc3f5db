#include "text/token_bytes.h"

#include <gtest/gtest.h>

#include "text/bpe_trainer.h"
#include "text_testing.h"

namespace megalith {
namespace {

TEST(TokenBytes, AddUpToTheBytesOfTheText) {
  Folder folder;
  std::string text;
  for (int i = 0; i < 200; i++) text += "A ship of " + std::to_string(i) + " sailors — für Käse und Brot.\n\n";
  const auto tokenizer = parse_tokenizer_json(train_bpe({folder.write("t.txt", text)}, 400, {"<|user|>"}), "trained");
  const std::vector<int32_t> bytes = token_bytes(*tokenizer);
  ASSERT_EQ(std::ssize(bytes), tokenizer->vocab_size());
  int64_t sum = 0;
  for (const TokenId id : tokenizer->encode(text)) sum += bytes[static_cast<size_t>(id)];
  EXPECT_EQ(sum, std::ssize(text));
  EXPECT_EQ(bytes[static_cast<size_t>(*tokenizer->id_of("<|user|>"))], 0);
  EXPECT_EQ(bytes[static_cast<size_t>(*tokenizer->end_token())], 0);
}

}  // namespace
}  // namespace megalith
