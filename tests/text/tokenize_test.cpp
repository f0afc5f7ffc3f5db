#include "text/tokenize.h"

#include "text/shards.h"
#include "text_testing.h"

namespace megalith {
namespace {

TEST(Tokenize, ShardsHoldEachDocumentAndItsEnd) {
  Folder folder;
  CorpusOptions options;
  options.separator = "***";
  std::vector<std::string> documents;
  std::string text;
  for (uint64_t i = 0; i < 40; i++) {
    documents.push_back(made_up_text(i % 7 == 0 ? 6000 : 20, i) + "\n");
    text += documents.back() + "***\n";
  }
  auto file = folder.write("a.txt", text);
  for (int64_t threads : {1, 4}) {
    for (int64_t piece : {2000, 1 << 20}) {
      options.piece_bytes = piece;
      int64_t told = 0;
      auto counts = tokenize_corpus(
          {file, file}, options, small_tokenizer(), folder / "out/t",
          [&](int64_t bytes, int64_t total, const TokenizeCounts&) { told = bytes * 100 / total; }, threads);
      TokenShard shard(folder / "out/t");
      EXPECT_EQ(told, 100);
      EXPECT_EQ(counts.documents, 80);
      EXPECT_EQ(counts.text_bytes, static_cast<int64_t>(2 * (text.size() - 40 * 4)));
      ASSERT_EQ(shard.documents(), 80);
      ASSERT_EQ(shard.tokens(), counts.tokens);
      for (int64_t d = 0; d < 80; d++) {
        auto expected = small_tokenizer().encode(documents[static_cast<size_t>(d % 40)]);
        expected.push_back(*small_tokenizer().end_token());
        std::vector<TokenId> got(static_cast<size_t>(shard.document_begin(d + 1) - shard.document_begin(d)));
        shard.copy(shard.document_begin(d), got);
        ASSERT_EQ(got, expected) << "document " << d;
      }
    }
  }
}

TEST(Tokenize, AMistakeInTheDataLeavesNoShard) {
  Folder folder;
  auto good = folder.write("a.txt", made_up_text(1000)), bad = folder.write("b.jsonl", "{}\n");
  EXPECT_SAYS(user_error([&] {
                tokenize_corpus({good, bad}, {}, small_tokenizer(), folder / "t");
              }),
              "b.jsonl:1");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 2);
}

TEST(Tokenize, TheFingerprintChangesWithWhateverChangesTheTokens) {
  Folder folder;
  auto a = folder.write("a.txt", "some text"), b = folder.write("b.txt", "other text");
  CorpusOptions options, separated;
  separated.separator = "---";
  auto other = parse_tokenizer_json(train_bpe({a}, 260), "other");
  std::vector<std::string> keys{
      corpus_fingerprint({a, b}, options, small_tokenizer()),
      corpus_fingerprint({b, a}, options, small_tokenizer()),
      corpus_fingerprint({a}, options, small_tokenizer()),
      corpus_fingerprint({a, b}, separated, small_tokenizer()),
      corpus_fingerprint({a, b}, options, *other),
      corpus_fingerprint({folder.write("c.jsonl", "some text"), b}, options, small_tokenizer())};
  for (size_t i = 0; i < keys.size(); i++)
    for (size_t j = 0; j < i; j++) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
  EXPECT_EQ(keys[0].size(), 32u);
  EXPECT_EQ(corpus_fingerprint({folder.write("copy.txt", "some text"), b}, options, small_tokenizer()),
            keys[0])
      << "names do not matter";
}

}  // namespace
}  // namespace megalith
