#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/files.h"
#include "data/objectives.h"

namespace megalith {

TEST(VocabularyFacts, AreThoseOfTheTokenizer) {
  std::string folder = testing::TempDir() + "megalith_vocabulary_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto file = std::filesystem::path(folder) / "vocab.txt";
  write_file_atomically(file, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsong\n##s\n");
  const auto tokenizer = load_tokenizer(file);
  std::filesystem::remove_all(folder);
  const VocabularyFacts facts = facts_of(*tokenizer);
  EXPECT_EQ(facts.vocab_size, 7);
  EXPECT_EQ(facts.mask_token, 4);
  EXPECT_TRUE(facts.is_special(3));
  EXPECT_FALSE(facts.is_special(5));
  EXPECT_TRUE(facts.starts_word(5));
  EXPECT_FALSE(facts.starts_word(6));
}

}  // namespace megalith
