#include "text/tokenizer.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "text_testing.h"

namespace megalith {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

std::string vocab_txt() {
  return "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nwant\n##want\n##ed\nrun\n##ning\n,"
         "\nlow\ncafe\n\u65e5\n";
}

json tiny_bpe() {
  return {{"type", "BPE"},
          {"unk_token", "<unk>"},
          {"vocab", {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}, {"c", 4}, {"abc", 5}, {"bc", 6}}},
          {"merges", {"b c", "a b", "ab c"}}};
}

std::unique_ptr<Tokenizer> with_model(json model, json parts = json::object()) {
  parts["model"] = std::move(model);
  return parse_tokenizer_json(print_json(parts), "t.json");
}

TEST(Tokenizer, Gpt2GivesTheKnownIds) {
  SKIP_WITHOUT_SHARED("gpt2_tokenizer.json");
  auto tokenizer = load_tokenizer(shared_corpus("gpt2_tokenizer.json"));
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  EXPECT_EQ(tokenizer->encode("Hello world"), (Ids{15496, 995}));
  EXPECT_EQ(tokenizer->encode("a<|endoftext|>b"), (Ids{64, 50256, 65}));
  EXPECT_EQ(tokenizer->end_token(), 50256);
  EXPECT_FALSE(tokenizer->begin_token() || tokenizer->mask_token());
  EXPECT_TRUE(tokenizer->starts_word(995) && !tokenizer->starts_word(15496));
}

// Expects the counts that nanoGPT's README gives for data/shakespeare.
TEST(Tokenizer, Gpt2GivesTheKnownCountsOnTinyShakespeare) {
  SKIP_WITHOUT_SHARED("gpt2_tokenizer.json");
  SKIP_WITHOUT_SHARED("tinyshakespeare.txt");
  auto tokenizer = load_tokenizer(shared_corpus("gpt2_tokenizer.json"));
  std::string text = read_file(shared_corpus("tinyshakespeare.txt"));  // ASCII: one byte per character
  size_t cut = static_cast<size_t>(static_cast<double>(text.size()) * 0.9);
  auto train = tokenizer->encode(text.substr(0, cut)), valid = tokenizer->encode(text.substr(cut));
  EXPECT_EQ(train.size(), 301966u);
  EXPECT_EQ(valid.size(), 36059u);
  EXPECT_EQ(tokenizer->decode(train), text.substr(0, cut));
}

TEST(Tokenizer, ByteLevelGivesBackEveryByte) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; i++) {
    std::string text = hostile_string(random, true);
    ASSERT_EQ(small_tokenizer().decode(small_tokenizer().encode(text), true), text);
  }
}

TEST(Tokenizer, ManyThreadsEncodeAlike) {
  std::string text = made_up_text(5000, 9);
  auto expected = small_tokenizer().encode(text);
  std::vector<Ids> got(4);
  std::vector<std::thread> threads;
  for (auto& ids : got) threads.emplace_back([&] { ids = small_tokenizer().encode(text); });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : got) EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, SpecialTokensAreCutOutOfTheTextAndLeftOutOfTheAnswer) {
  const Tokenizer& t = small_tokenizer();
  auto ids = t.encode("one<|mask|>two<|endoftext|>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *t.mask_token()), 1);
  EXPECT_EQ(ids.back(), *t.end_token());
  EXPECT_EQ(t.decode(ids), "onetwo");
  EXPECT_EQ(t.decode(ids, true), "one<|mask|>two<|endoftext|>");
  EXPECT_TRUE(t.is_special(*t.mask_token()));
}

TEST(Tokenizer, TheEarlierMergeWinsAndUnknownCharactersAreMarked) {
  auto tokenizer = with_model(tiny_bpe());
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{1, 6})) << "b c is joined first, and a bc is no pair";
  EXPECT_EQ(tokenizer->encode("abab"), (Ids{3, 3}));
  EXPECT_EQ(tokenizer->encode("axxb"), (Ids{1, 0, 0, 2}));
  json fused = tiny_bpe();
  fused["fuse_unk"] = true;
  EXPECT_EQ(with_model(fused)->encode("axxb"), (Ids{1, 0, 2}));
  json whole = tiny_bpe();
  whole["ignore_merges"] = true;
  EXPECT_EQ(with_model(whole)->encode("abc"), (Ids{5})) << "the word is a token";
}

// BPE by definition: joins the pair with the lowest rank, leftmost first.
Ids naive_bpe(const json& model, const std::string& text) {
  std::vector<std::string> symbols;
  for (char c : text) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = model["merges"].size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); i++)
      for (size_t rank = 0; rank < best; rank++)
        if (model["merges"][rank] == json(symbols[i] + " " + symbols[i + 1])) best = rank, at = i;
    if (best == model["merges"].size()) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<int64_t>(at) + 1);
  }
  Ids ids;
  for (const auto& symbol : symbols) ids.push_back(model["vocab"][symbol]);
  return ids;
}

TEST(Tokenizer, LongWordsAreMergedLikeShortOnes) {
  json model{{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}};
  std::mt19937_64 random(4);
  std::vector<std::string> tokens{"a", "b", "c"};
  while (tokens.size() < 14) {
    const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
    if (left.size() + right.size() > 6 || std::count(tokens.begin(), tokens.end(), left + right)) continue;
    model["merges"].push_back(left + " " + right);
    tokens.push_back(left + right);
  }
  for (size_t id = 0; id < tokens.size(); id++) model["vocab"][tokens[id]] = id;
  auto tokenizer = with_model(model);
  for (size_t length : {1, 2, 5, 26, 27, 47, 48, 49, 50, 90}) {
    std::string text;
    for (int repeat = 0; repeat < 5; repeat++, text.clear()) {
      while (text.size() < length) text += static_cast<char>('a' + random() % 3);
      EXPECT_EQ(tokenizer->encode(text), naive_bpe(model, text)) << text;
    }
  }
}

TEST(Tokenizer, VocabTxtIsBertsWordPiece) {
  Folder folder;
  auto tokenizer = load_tokenizer(folder.write("vocab.txt", vocab_txt()));
  EXPECT_EQ(tokenizer->encode("Unaffable wanted, running"), (Ids{5, 6, 7, 8, 10, 13, 11, 12}));
  EXPECT_EQ(tokenizer->encode("CAF\u00c9 x low\u65e5", true), (Ids{2, 15, 1, 14, 16, 3}))
      << "accents, capitals, unknown word";
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 6, 7, 13, 11, 12, 3}), "unaffable, running");
  EXPECT_EQ(tokenizer->mask_token(), 4);
  EXPECT_EQ(tokenizer->begin_token(), 2);
  EXPECT_EQ(tokenizer->end_token(), 3);
  EXPECT_FALSE(tokenizer->starts_word(6));
  EXPECT_TRUE(tokenizer->starts_word(5));
  auto again = parse_tokenizer_json(tokenizer->files()[0].second, "copy");
  EXPECT_EQ(again->encode("Unaffable [MASK]"), tokenizer->encode("Unaffable [MASK]"));
}

TEST(Tokenizer, CapitalsInVocabTxtMeanThatCaseMatters) {
  Folder folder;
  auto tokenizer = load_tokenizer(folder.write("vocab.txt", vocab_txt() + "Low\n"));
  EXPECT_EQ(tokenizer->encode("Low low"), (Ids{17, 14}));
}

TEST(Tokenizer, AnUnknownComponentIsNamed) {
  auto message = [](json parts, json model = tiny_bpe()) {
    return user_error([&] { with_model(std::move(model), std::move(parts)); });
  };
  EXPECT_SAYS(message({}, {{"type", "WordLevel"}, {"vocab", json::object()}}),
              "t.json: model: expected one of BPE, WordPiece, Unigram, got WordLevel");
  EXPECT_SAYS(message({{"normalizer", {{"type", "ByteLevel"}}}}), "normalizer: expected one of");
  EXPECT_SAYS(message({{"normalizer", {{"type", "ByteLevel"}}}}), "got ByteLevel");
  EXPECT_SAYS(message({{"normalizer", {{"type", "Precompiled"}}}}), "a field precompiled_charsmap");
  EXPECT_SAYS(
      message({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Nonsense"}}}}}}}),
      "pre_tokenizer[0]: ");
  EXPECT_SAYS(message({{"post_processor", {{"type", "Nonsense"}}}}), "post_processor: ");
  EXPECT_SAYS(message({{"decoder", {{"type", "CTC"}}}}), "got CTC");
  json suffix = tiny_bpe();
  suffix["end_of_word_suffix"] = "</w>";
  EXPECT_SAYS(message({}, suffix), "end_of_word_suffix");
}

TEST(Tokenizer, AFileThatIsNoTokenizerIsRefused) {
  auto message = [](const std::string& text) {
    return user_error([&] { parse_tokenizer_json(text, "t.json"); });
  };
  EXPECT_SAYS(message("{"), "t.json:1:2: expected JSON");
  EXPECT_SAYS(message("[]"), "t.json: ");
  EXPECT_SAYS(message("{}"), "check whether this is the file of a tokenizer");
  EXPECT_SAYS(message(R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"),
              "expected ids from 0");
  EXPECT_SAYS(message(R"({"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}})"),
              "expected ids from 0");
  EXPECT_SAYS(message(R"({"model": {"type": "BPE", "vocab": {"a": 1}, "merges": ["a b"]}})"),
              "\"b\", which is not");
  EXPECT_SAYS(message(R"({"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}})"), "expected ids");
  EXPECT_SAYS(message(R"({"model": {"type": "BPE", "vocab": {"a": 1}, "merges": []},
                          "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}})"),
              "regular expression");
}

// Recursive functions read nested parts, so the depth must be limited.
TEST(Tokenizer, PartsInsideEachOtherAreLimited) {
  for (const auto& [part, list] : {std::pair("pre_tokenizer", "pretokenizers"), std::pair("normalizer", "normalizers"),
                                   std::pair("decoder", "decoders"), std::pair("post_processor", "processors")}) {
    auto nested = [&](size_t levels) {
      std::string begin, end;
      for (size_t i = 0; i < levels; i++) {
        begin += fmt::format(R"({{"type": "Sequence", "{}": [)", list);
        end += "]}";
      }
      return fmt::format(R"({{"model": {}, "{}": {}{}}})", print_json(tiny_bpe()), part, begin, end);
    };
    EXPECT_SAYS(user_error([&] { parse_tokenizer_json(nested(30000), "t.json"); }),
                "t.json: expected JSON with at most 256 levels of nesting");
    EXPECT_NO_THROW(parse_tokenizer_json(nested(127), "t.json")) << part;
  }
}

TEST(Tokenizer, DamagedFilesNeverCrash) {
  Folder folder;
  std::string good = train_bpe({folder.write("t.txt", "some text, some more")}, 260);
  std::mt19937_64 random(8);
  int refused = 0;
  for (int i = 0; i < 1500; i++) {
    std::string bad = good;
    for (uint64_t n = 1 + random() % 3; n > 0; n--) bad[random() % bad.size()] = "{}[]\",:0a-"[random() % 10];
    try {
      parse_tokenizer_json(bad, "t.json")->encode("some text");
    } catch (const UserError&) {
      refused++;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Tokenizer, AnIdBeyondTheVocabularyIsRefused) {
  EXPECT_SAYS(user_error([] { small_tokenizer().decode(Ids{600}); }),
              "token id: expected 0 to 599 (the tokenizer's vocabulary), got 600");
}

TEST(Tokenizer, OtherFilesOfAFolderGoAlong) {
  Folder folder;
  folder.write("tokenizer.json", small_tokenizer().files()[0].second);
  folder.write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>", "mine": 1})");
  auto files = load_tokenizer(folder / "")->files();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].second, small_tokenizer().files()[0].second);
  EXPECT_SAYS(files[1].second, "mine");
  EXPECT_SAYS(small_tokenizer().files()[1].second, "PreTrainedTokenizerFast");
}

TEST(Tokenizer, AFileOfAnotherKindIsRefused) {
  Folder folder;
  EXPECT_SAYS(user_error([&] { load_tokenizer(folder.write("x.bin", "x")); }),
              "expected a tokenizer.json, a SentencePiece .model");
  EXPECT_SAYS(user_error([&] { load_tokenizer(folder / ""); }), "none of them");
  EXPECT_SAYS(user_error([&] { load_tokenizer(folder / "none.json"); }), "no such file");
  EXPECT_SAYS(user_error([&] { load_tokenizer(folder.write("vocab.txt", "a\nb\n")); }), "[UNK]");
}

}  // namespace
}  // namespace megalith
