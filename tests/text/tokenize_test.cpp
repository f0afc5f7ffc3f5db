#include "text/tokenize.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/json.h"
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
      auto counts = tokenize_corpus({file, file}, options, small_tokenizer(), folder / "out/t",
                                    {.progress = [&](int64_t bytes, int64_t total,
                                                     const TokenizeCounts&) { told = bytes * 100 / total; },
                                     .threads = threads});
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

// Returns files of every kind, with documents much longer and much shorter than a piece.
std::vector<std::filesystem::path> mixed_files(const Folder& folder) {
  std::string separated, lines, token;
  for (uint64_t i = 0; i < 60; i++) {
    std::string text = made_up_text(i % 9 == 0 ? 3000 : 30, i);
    separated += text + "\n***\n";
    lines += print_json(nlohmann::json{{"text", text}}) + "\n";
  }
  std::string no_place;  // text without a safe place to cut
  while (no_place.size() < 70000) no_place += "\u65e5\u672c\u8a9e";
  return {folder.write("a.txt", separated), folder.write("b.jsonl", lines),
          folder.write("c.txt", "\xEF\xBB\xBF" + made_up_text(5000, 99)), folder.write("d.txt", no_place),
          folder.write("e.txt", "short")};
}

std::string both_files(const std::filesystem::path& prefix) {
  return read_file(shard_file(prefix, ".idx")) + read_file(shard_file(prefix, ".bin")) +
         read_file(shard_file(prefix, ".sums"));
}

TEST(Tokenize, InterruptedWorkGoesOnAndEndsInTheSameBytes) {
  Folder folder;
  auto files = mixed_files(folder);
  CorpusOptions options;
  options.separator = "***";
  options.piece_bytes = 2000;
  TokenizeCounts whole = tokenize_corpus(files, options, small_tokenizer(), folder / "whole");
  for (int64_t batches : {5, 11, 40}) {
    std::filesystem::path prefix = folder / fmt::format("parts{}", batches);
    int interruptions = 0;
    int64_t last_start = -1;
    TokenizeCounts counts;
    for (bool finished = false; !finished;) {
      int64_t asked = 0, start = -1;
      TokenizeHooks hooks;
      hooks.stop = [&] { return asked++ == batches; };
      hooks.progress = [&](int64_t bytes, int64_t, const TokenizeCounts&) {
        start = start < 0 ? bytes : start;
      };
      hooks.threads = 1 + interruptions % 3;
      try {
        counts = tokenize_corpus(files, options, small_tokenizer(), prefix, hooks);
        finished = true;
      } catch (const Interrupted& stopped) {
        EXPECT_SAYS(std::string(stopped.what()), "run the same command again to resume");
        ASSERT_LT(++interruptions, 1000) << "it does not get on";
        EXPECT_FALSE(is_shard(prefix));
      }
      ASSERT_GE(start, last_start);
      last_start = start;
    }
    EXPECT_GT(interruptions, 200 / batches / 2);
    EXPECT_EQ(both_files(prefix), both_files(folder / "whole")) << batches;
    EXPECT_EQ(counts.documents, whole.documents);
    EXPECT_EQ(counts.tokens, whole.tokens);
    EXPECT_EQ(counts.text_bytes, whole.text_bytes);
    EXPECT_FALSE(std::filesystem::exists(folder / fmt::format("parts{}.bin.partial", batches)));
    EXPECT_FALSE(std::filesystem::exists(folder / fmt::format("parts{}.lengths.partial", batches)));
    EXPECT_FALSE(std::filesystem::exists(folder / fmt::format("parts{}.partial.json", batches)));
  }
}

TEST(Tokenize, AKilledProcessLosesNoMoreThanItsLastMoments) {
  Folder folder;
  auto files = mixed_files(folder);
  CorpusOptions options;
  options.separator = "***";
  options.piece_bytes = 2000;
  small_tokenizer();  // trains the tokenizer before the test forks processes
  tokenize_corpus(files, options, small_tokenizer(), folder / "whole");
  for (int round = 0; round < 8; round++) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int64_t asked = 0;
      TokenizeHooks hooks{.threads = 1, .keep_seconds = 0};
      hooks.stop = [&]() -> bool { return asked++ == 20 ? ::raise(SIGKILL) != 0 : false; };
      tokenize_corpus(files, options, small_tokenizer(), folder / "t", hooks);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_FALSE(is_shard(folder / "t"));
  }
  int64_t start = 0;
  TokenizeHooks hooks;
  hooks.progress = [&](int64_t bytes, int64_t, const TokenizeCounts&) { start = start ? start : bytes; };
  tokenize_corpus(files, options, small_tokenizer(), folder / "t", hooks);
  EXPECT_GT(start, 0) << "it began anew";
  EXPECT_EQ(both_files(folder / "t"), both_files(folder / "whole"));
}

TEST(Tokenize, OnlyTheSameJobIsGoneOnWith) {
  Folder folder;
  auto file = folder.write("a.txt", made_up_text(4000) + "\n***\n" + made_up_text(4000, 2));
  auto other_file = folder.write("b.txt", made_up_text(4000, 3));
  auto other_tokenizer = parse_tokenizer_json(train_bpe({file}, 280), "other");
  CorpusOptions options, separated;
  options.piece_bytes = separated.piece_bytes = 2000;
  separated.separator = "***";
  auto leave_half = [&] {
    int64_t asked = 0;
    TokenizeHooks hooks{.stop = [&] { return asked++ == 10; }};
    EXPECT_THROW(tokenize_corpus({file}, options, small_tokenizer(), folder / "t", hooks), Interrupted);
    EXPECT_TRUE(std::filesystem::exists(folder / "t.partial.json"));
  };
  auto expect_anew = [&](const std::vector<std::filesystem::path>& files, const CorpusOptions& how,
                         const Tokenizer& tokenizer, const char* what) {
    leave_half();
    int64_t start = -1;
    TokenizeHooks hooks;
    hooks.progress = [&](int64_t bytes, int64_t, const TokenizeCounts&) {
      start = start < 0 ? bytes : start;
    };
    tokenize_corpus(files, how, tokenizer, folder / "t", hooks);
    EXPECT_EQ(start, 0) << what;
    tokenize_corpus(files, how, tokenizer, folder / "fresh");
    EXPECT_EQ(both_files(folder / "t"), both_files(folder / "fresh")) << what;
    std::filesystem::remove(folder / "t.idx");
  };
  expect_anew({other_file}, options, small_tokenizer(), "another file");
  expect_anew({file, other_file}, options, small_tokenizer(), "one file more");
  expect_anew({file}, separated, small_tokenizer(), "another option");
  expect_anew({file}, options, *other_tokenizer, "another tokenizer");
  leave_half();
  folder.write("a.txt", made_up_text(8000, 7));
  tokenize_corpus({file}, options, small_tokenizer(), folder / "t");
  tokenize_corpus({file}, options, small_tokenizer(), folder / "fresh");
  EXPECT_EQ(both_files(folder / "t"), both_files(folder / "fresh")) << "changed text";
}

TEST(Tokenize, DocumentsThatAreNotUtf8AreTakenAndCounted) {
  Folder folder;
  CorpusOptions options;
  options.separator = "-";
  auto file = folder.write("latin1.txt", "caf\xE9\n-\nplain\n-\nna\xEFve\n");
  auto counts = tokenize_corpus({file}, options, small_tokenizer(), folder / "t");
  EXPECT_EQ(counts.documents, 3);
  EXPECT_EQ(counts.not_utf8, 2);
  TokenShard shard(folder / "t");
  std::vector<TokenId> ids(static_cast<size_t>(shard.document_begin(1)));
  shard.copy(0, ids);
  EXPECT_EQ(small_tokenizer().decode(ids), "caf\xE9\n");
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
