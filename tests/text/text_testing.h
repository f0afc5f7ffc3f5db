// Helpers for the tests of text/: a temporary folder, generated text, the shared corpus if it exists.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "source_folder.h"
#include "text/bpe_trainer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace megalith {

class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "/megalith_text_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// Returns the path of a file of ../shared/corpus, or an empty path if it does not exist.
inline std::filesystem::path shared_corpus(const std::string& name) {
  const char* set = std::getenv("MEGALITH_SHARED");
  std::filesystem::path root = set ? set : source_folder() / "../shared";
  std::filesystem::path file = root / "corpus" / name;
  return std::filesystem::exists(file) ? file : std::filesystem::path();
}
#define SKIP_WITHOUT_SHARED(name) \
  if (shared_corpus(name).empty()) GTEST_SKIP() << "../shared/corpus/" << name << " is not there"

// Generates words with a long-tailed distribution, punctuation, numbers, accents, lines and paragraphs.
inline std::string made_up_text(size_t words, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return random() % n; };
  std::vector<std::string> known;
  for (int i = 0; i < 400; i++) {
    std::string word;
    for (uint64_t length = 1 + below(8); word.size() < length;) word += "etaoinshrdlu"[below(12)];
    known.push_back(word);
  }
  known.insert(known.end(),
               {"caf\u00e9", "\u65e5\u672c\u8a9e", "na\u00efve", "1984", "3.14", "don't", "we'll"});
  std::string text;
  for (size_t i = 0; i < words; i++) {
    text += known[below(1 + below(known.size()))];
    switch (below(16)) {
      case 0:
        text += ", ";
        break;
      case 1:
        text += ".\n";
        break;
      case 2:
        text += "\n\n";
        break;
      case 3:
        text += "  ";
        break;
      default:
        text += ' ';
    }
  }
  return text;
}

// Generates strings that are hard for tokenizers; valid UTF-8 unless `invalid_bytes` is true.
inline std::string hostile_string(std::mt19937_64& random, bool invalid_bytes = false) {
  static const std::vector<std::string> kPieces = {" ",
                                                   "  ",
                                                   "\n",
                                                   "\r\n",
                                                   "\t",
                                                   "\u00a0",
                                                   "\u3000",
                                                   "\u180e",
                                                   "\u2003",
                                                   "'",
                                                   "'s",
                                                   "'ll",
                                                   "'re",
                                                   "'v",
                                                   "a",
                                                   "Z",
                                                   "the",
                                                   "12",
                                                   "\u0664",
                                                   "\u00bd",
                                                   ".",
                                                   ",!",
                                                   "\u00e9",
                                                   "e\u0301",
                                                   "\u65e5\u672c",
                                                   "\U0001F642",
                                                   "\u200d",
                                                   "_",
                                                   "<|endoftext|>",
                                                   "\u2581"};
  std::string text;
  for (uint64_t n = random() % 30; n > 0; n--) {
    if (random() % 8 == 0) {
      uint32_t c = static_cast<uint32_t>(random() % 0x110000);
      if (c < 0xD800 || c > 0xDFFF) append_utf8(text, c);
    } else if (invalid_bytes && random() % 4 == 0) {
      text += static_cast<char>(random());
    } else {
      text += kPieces[random() % kPieces.size()];
    }
  }
  if (!invalid_bytes) text += std::string(1, '\0');
  return text;
}

// A small byte-level BPE, trained once.
inline const Tokenizer& small_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    Folder folder;
    return parse_tokenizer_json(train_bpe({folder.write("text.txt", made_up_text(20000))}, 600, {"<|mask|>"}),
                                "trained");
  }();
  return *tokenizer;
}

// Returns the message of the UserError that `fn` must throw.
inline std::string user_error(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError";
  return "";
}
#define EXPECT_SAYS(message, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, message)

}  // namespace megalith
