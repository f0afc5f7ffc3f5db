// The content of a SentencePiece .model file (protocol buffer ModelProto of github.com/google/sentencepiece,
// src/sentencepiece_model.proto).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct SentencePieceFile {
  enum class Type : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  enum class Kind : uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;  // by id
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  std::string begin_piece = "<s>", end_piece = "</s>", pad_piece = "<pad>";
  std::string unknown_text = " \u2047 ";  // text that the unknown piece decodes to
  // Settings of the normalizer:
  std::string charsmap;             // rewriting rules; empty if the file has no rules
  bool prefix_space = true;         // a space is put in front of a text
  bool remove_extra_spaces = true;  // removes spaces at both ends, and all but one of a run
};

// Throws a UserError that names `where` if the file is damaged, of another format, or not supported. Not supported: kinds
// other than unigram and BPE, spaces as suffixes, unescaped spaces, rewriting of decoded text.
SentencePieceFile read_sentencepiece(std::string_view bytes, const std::string& where);

// Returns the tokenizer.json that corresponds to the file. With it, Hugging Face gives the same ids for ordinary text,
// but not for every text. Hugging Face applies rewriting rules by grapheme, sums scores in another precision, and first
// cuts control and user-defined pieces out of the text. Megalith reads the .model file itself, stored as
// model.sentencepiece, and is exact.
std::string sentencepiece_json(const SentencePieceFile& file, std::string_view bytes);

}  // namespace megalith
