#include "text/corpus.h"

#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/safe_cut.h"
#include "text_testing.h"

namespace megalith {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::vector<std::string> documents(const std::vector<std::filesystem::path>& files,
                                   const CorpusOptions& options = {}) {
  std::vector<std::string> all;
  bool open = false;
  for_each_piece(files, options, [&](const DocumentPiece& piece) {
    EXPECT_EQ(piece.first, !open);
    EXPECT_LE(piece.bytes_read, stored_bytes(files));
    if (piece.first) all.emplace_back();
    all.back() += piece.text;
    open = !piece.last;
  });
  EXPECT_FALSE(open);
  return all;
}

TEST(Corpus, AFileIsADocumentHoweverItIsStored) {
  Folder folder;
  std::string text = made_up_text(150000);
  EXPECT_EQ(documents({folder.write("a.txt", text)}), std::vector{text});
  EXPECT_EQ(documents({folder.write("a.gz", gzip(text))}), std::vector{text});
  EXPECT_EQ(documents({folder.write("a.zst", zstd(text))}), std::vector{text});
  EXPECT_EQ(documents({folder.write("two.gz", gzip(text) + gzip("more"))}), std::vector{text + "more"})
      << "two members";
  EXPECT_EQ(documents({folder.write("two.zst", zstd(text) + zstd("more"))}), std::vector{text + "more"})
      << "two frames";
  std::string flat(10 << 20, 'x');  // decompresses to a much larger text
  EXPECT_EQ(documents({folder.write("flat.gz", gzip(flat))}), std::vector{flat});
  EXPECT_EQ(documents({folder.write("flat.zst", zstd(flat))}), std::vector{flat});
}

TEST(Corpus, SeparatorLinesEndDocuments) {
  Folder folder;
  CorpusOptions options;
  options.separator = "<|endoftext|>";
  auto file = folder.write(
      "a.txt",
      "one\ntwo\n<|endoftext|>\n<|endoftext|>\r\nx <|endoftext|>\n<|endoftext|> \nlast\n<|endoftext|>");
  std::vector<std::string> expected{"one\ntwo\n", "x <|endoftext|>\n<|endoftext|> \nlast\n"};
  for (int64_t piece : {1 << 20, 10, 1}) {
    options.piece_bytes = piece;
    EXPECT_EQ(documents({file}, options), expected);
  }
  std::vector<std::string> many;
  std::string joined;
  for (uint64_t i = 0; i < 60; i++) {
    many.push_back(made_up_text(1 + i * 100, i) + "\n");
    joined += many.back() + options.separator + "\n";
  }
  options.piece_bytes = 5000;
  EXPECT_EQ(documents({folder.write("b.txt", joined)}, options), many);
  std::string long_line = std::string(700000, 'a') + options.separator + "\n";
  EXPECT_EQ(documents({folder.write("c.txt", long_line + options.separator + "\nb")}, options),
            (std::vector<std::string>{long_line, "b"}));
}

TEST(Corpus, SeparatorTokensEndDocumentsWhereverTheyStand) {
  Folder folder;
  CorpusOptions options;
  options.separator_token = "<|endoftext|>";
  auto file =
      folder.write("a.txt", "<|endoftext|>one<|endoftext|>two\n<|endoftext|><|endoftext|>three <|endoftext");
  for (int64_t piece : {1 << 20, 10, 1}) {
    options.piece_bytes = piece;
    EXPECT_EQ(documents({file}, options), (std::vector<std::string>{"one", "two\n", "three <|endoftext"}));
  }
  std::vector<std::string> many;
  std::string joined;
  for (uint64_t i = 0; i < 300; i++) {  // separator tokens cross the borders between reads
    many.push_back(made_up_text(1 + i * 7, i));
    joined += many.back() + options.separator_token;
  }
  options.piece_bytes = 5000;
  EXPECT_EQ(documents({folder.write("b.txt", joined)}, options), many);
  EXPECT_EQ(documents({folder.write("b.txt.gz", gzip(joined))}, options), many);
}

TEST(Corpus, ReadingGoesOnFromEveryPlace) {
  Folder folder;
  CorpusOptions lines, tokens;
  lines.separator = "***";
  tokens.separator_token = "***";
  std::string text, json;
  for (uint64_t i = 0; i < 12; i++) {
    std::string document = made_up_text(20 + 90 * (i % 4), i);
    text += document + "\n***\n";
    json += print_json(nlohmann::json{{"text", document}}) + "\n\n";
  }
  std::vector<std::filesystem::path> files{
      folder.write("a.txt", "\xEF\xBB\xBF" + text), folder.write("b.txt.gz", gzip("\xEF\xBB\xBF" + text)),
      folder.write("c.jsonl", json), folder.write("d.jsonl.zst", zstd(json))};
  for (CorpusOptions options : {CorpusOptions{}, lines, tokens}) {
    options.piece_bytes = 300;
    struct Seen {
      std::string text;
      bool first, last;
      bool operator==(const Seen&) const = default;
    };
    std::vector<Seen> whole;
    std::vector<TextPlace> places;
    for_each_piece(files, options, [&](const DocumentPiece& piece) {
      whole.push_back({std::string(piece.text), piece.first, piece.last});
      places.push_back(piece.after);
    });
    EXPECT_GT(whole.size(), 100u);
    for (size_t i = 0; i < whole.size(); i++) {
      std::vector<Seen> rest;
      for_each_piece(
          files, options,
          [&](const DocumentPiece& piece) {
            rest.push_back({std::string(piece.text), piece.first, piece.last});
          },
          places[i]);
      ASSERT_TRUE(std::ranges::equal(rest, std::span(whole).subspan(i + 1))) << "after piece " << i;
    }
  }
}

TEST(Corpus, JsonLinesAreADocumentALine) {
  Folder folder;
  std::string lines;
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 200; i++) {
    expected.push_back(made_up_text(100 + i * 10, i));
    lines += print_json(nlohmann::json{{"content", expected.back()}, {"n", i}}) + "\n" + (i % 3 ? "" : "\n");
  }
  lines += R"({"content": ""})";  // an empty document is skipped
  CorpusOptions options;
  options.text_field = "content";
  options.piece_bytes = 4000;
  EXPECT_EQ(documents({folder.write("a.jsonl", lines)}, options), expected);
  EXPECT_EQ(documents({folder.write("a.jsonl.gz", gzip(lines))}, options), expected);
}

TEST(Corpus, PiecesTokenizeLikeTheWhole) {
  std::string text = made_up_text(60000, 3);
  for (int64_t piece_bytes : {300, 5000, 100000}) {
    Folder folder;
    CorpusOptions options;
    options.piece_bytes = piece_bytes;
    std::vector<TokenId> ids;
    int pieces = 0;
    for_each_piece({folder.write("a.txt", text)}, options, [&](const DocumentPiece& piece) {
      auto more =
          piece.first ? small_tokenizer().encode(piece.text) : small_tokenizer().encode_continued(piece.text);
      ids.insert(ids.end(), more.begin(), more.end());
      pieces++;
    });
    EXPECT_GT(pieces, static_cast<int>(static_cast<int64_t>(text.size()) / piece_bytes / 2));
    EXPECT_EQ(ids, small_tokenizer().encode(text));
  }
}

TEST(Corpus, APieceIsBoundedEvenWithoutAPlaceToCut) {
  Folder folder;
  std::string text;
  while (text.size() < 200000) text += "\u65e5\u672c\u8a9e";
  CorpusOptions options;
  options.piece_bytes = 1000;
  std::string joined;
  for_each_piece({folder.write("a.txt", text)}, options, [&](const DocumentPiece& piece) {
    EXPECT_LE(piece.text.size(), 17000u);
    EXPECT_EQ(incomplete_suffix(piece.text), 0u) << "a character was cut";
    joined += piece.text;
  });
  EXPECT_EQ(joined, text);
}

TEST(Corpus, CutsOnlyWhereNothingJoins) {
  EXPECT_EQ(last_safe_cut("one two three"), 7u);
  EXPECT_EQ(last_safe_cut("One.\n\u65e5\u672c\u8a9e"), 5u) << "behind a line feed";
  EXPECT_EQ(last_safe_cut("1.\n\nxxxxx"), 0u) << "the second of two line feeds is the word's behind it";
  EXPECT_EQ(last_safe_cut("1.\n xxxxx"), 0u);
  EXPECT_EQ(last_safe_cut("1.\n\u3000xxxxx"), 0u) << "a wide space";
  EXPECT_EQ(last_safe_cut("12 34 56 78"), 0u);
}

TEST(Corpus, PatternsAndNamesAreExpandedInOrder) {
  Folder folder;
  auto b = folder.write("b.txt", "b"), a = folder.write("a.txt", "a"), z = folder.write("z[1].txt", "z");
  EXPECT_EQ(expand_files({z.string(), (folder / "?.txt").string()}), (std::vector{z, a, b}));
}

TEST(Corpus, WhatCannotBeReadIsNamed) {
  Folder folder;
  CorpusOptions options;
  auto reading = [&](const std::filesystem::path& file) {
    return user_error([&] { documents({file}, options); });
  };
  EXPECT_SAYS(user_error([&] { expand_files({(folder / "none.txt").string()}); }),
              "none.txt: data: expected a file, got no such file");
  EXPECT_SAYS(user_error([&] { expand_files({(folder / "*.txt").string()}); }),
              "*.txt: data: expected a pattern that matches files, got no match");
  EXPECT_SAYS(user_error([&] { expand_files({(folder / "").string()}); }), "got a folder");
  EXPECT_SAYS(reading(folder / "none.txt"), "none.txt: cannot read: No such file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_SAYS(reading(folder / "pipe"), "pipe: expected a regular file, got a pipe or a device");
  EXPECT_SAYS(user_error([&] { stored_bytes({folder / "pipe"}); }), "pipe: expected a regular file, got a pipe or a device");
  EXPECT_SAYS(reading(folder.write("deep.jsonl", "{\"text\": \"a\"}\n" + std::string(30000, '['))),
              "deep.jsonl:2: expected JSON with at most 256 levels of nesting");
  EXPECT_SAYS(reading(folder.write("empty.txt", "")), "empty.txt: expected text, got an empty file");
  auto wide = [](const std::string& text) {
    std::string out;
    for (char c : text) out += std::string{c, '\0'};
    return out;
  };
  EXPECT_SAYS(reading(folder.write("utf16.txt", "\xFF\xFEh")),
              "utf16.txt: expected UTF-8 text, got UTF-16; convert");
  EXPECT_SAYS(reading(folder.write("unmarked.txt", wide("some text"))), "got UTF-16");
  EXPECT_SAYS(reading(folder.write("wide.gz", gzip(wide("some text")))),
              "wide.gz: expected UTF-8 text, got UTF-16");
  EXPECT_SAYS(reading(folder.write("a.out", std::string("\177ELF\2\1\1\0\0\0", 10))), "as in a binary file");
  EXPECT_SAYS(reading(folder.write("t.parquet", "PAR1....")), "got a Parquet table; convert it to JSON lines");
  EXPECT_SAYS(reading(folder.write("t.txt.bz2", "BZh91AY")), "text packed with gzip or zstd, got bzip2; unpack it");
  std::string packed = gzip(made_up_text(1000)), broken = packed;
  broken[packed.size() / 2] = static_cast<char>(~broken[packed.size() / 2]);
  EXPECT_SAYS(reading(folder.write("short.gz", packed.substr(0, packed.size() - 9))),
              "got a damaged file (it ends too early)");
  EXPECT_SAYS(reading(folder.write("broken.gz", broken)),
              "broken.gz: expected complete gzip data, got a damaged file");
  packed = zstd(made_up_text(1000));
  EXPECT_SAYS(reading(folder.write("short.zst", packed.substr(0, packed.size() - 9))), "it ends too early");
  EXPECT_SAYS(
      reading(folder.write("a.jsonl", "{\"text\": \"x\"}\n{\"body\": \"y\"}\n")),
      "a.jsonl:2: data.text_field: expected a text field \"text\", got no such field; set data.text_field to one of: body");
  EXPECT_SAYS(reading(folder.write("b.jsonl", "{\"text\": 1}\n")),
              "b.jsonl:1: data.text_field: expected a text field \"text\", got number");
  EXPECT_SAYS(reading(folder.write("c.jsonl", "\n{\"text\": \n")),
              "c.jsonl:2: expected one JSON object per line");
  EXPECT_SAYS(reading(folder.write("l.jsonl", "{\"text\": \"caf\xE9\"}\n")),
              "l.jsonl:1: expected one JSON object");
  EXPECT_SAYS(reading(folder.write("l.jsonl", "{\"text\": \"caf\xE9\"}\n")), "the line is not UTF-8");
  EXPECT_SAYS(reading(folder.write("d.jsonl", "{\"text\": \"\"}")), "got only empty documents");
}

}  // namespace
}  // namespace megalith
