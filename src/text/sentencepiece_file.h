// What a SentencePiece .model file says (protocol buffer ModelProto of github.com/google/sentencepiece,
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
  std::string unknown_text = " \u2047 ";  // what the unknown piece decodes to
  // The normalizer.
  std::string charsmap;             // rewriting rules; empty: none
  bool prefix_space = true;         // a space is put in front of a text
  bool remove_extra_spaces = true;  // at both ends, and all but one of a run
};

// UserError naming `where` if the bytes are torn, no such file, or ask for what we do not support (kinds
// other than unigram and BPE, spaces as suffixes or unescaped, rewriting of decoded text).
SentencePieceFile read_sentencepiece(std::string_view bytes, const std::string& where);

// The tokenizer.json that stands for the file. Hugging Face gives the same ids on ordinary text: it applies
// rewriting rules by grapheme, sums scores in other precision and takes control and user-defined pieces out
// of the text before anything else. Megalith finds the file itself in it, as model.sentencepiece, and is
// exact.
std::string sentencepiece_json(const SentencePieceFile& file, std::string_view bytes);

}  // namespace megalith
