// Tokenizer for a SentencePiece .model. Gives exactly the ids of github.com/google/sentencepiece for every string. As
// in that library, control pieces ("</s>") that are written in the text are plain text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/byte_trie.h"
#include "text/charsmap.h"
#include "text/sentencepiece_file.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace megalith {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // `bytes` is the content of the file. Throws a UserError that names `where` if the file is damaged or not supported.
  SentencePieceTokenizer(std::string bytes, const std::string& where);

  std::vector<TokenId> encode(std::string_view text, bool add_special) const override;
  std::vector<TokenId> encode_continued(std::string_view text) const override;
  std::string decode(std::span<const TokenId> ids, bool keep_special) const override;

  int64_t vocab_size() const override { return static_cast<int64_t>(file_.pieces.size()); }
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::string token_of(TokenId id) const override { return piece(id).text; }
  std::optional<TokenId> end_token() const override { return id_of(file_.end_piece); }
  std::optional<TokenId> begin_token() const override { return id_of(file_.begin_piece); }
  std::optional<TokenId> mask_token() const override;
  bool is_special(TokenId id) const override { return piece(id).type == SentencePieceFile::Type::control; }
  bool starts_word(TokenId id) const override;
  std::vector<std::pair<std::string, std::string>> files() const override;

 private:
  using Type = SentencePieceFile::Type;

  const SentencePieceFile::Piece& piece(TokenId id) const;
  std::string normalize(std::string_view text, bool continues) const;
  // Returns the rewritten beginning of the text, and the number of bytes of `text` that it replaces.
  Charsmap::Rule normalized_prefix(std::string_view text) const;
  // bytes of the longest user-defined piece that the text begins with, or 0
  size_t user_defined_prefix(std::string_view text) const;
  void encode_unigram(std::string_view normalized, std::vector<TokenId>& ids) const;
  void encode_bpe(std::string_view normalized, std::vector<TokenId>& ids) const;
  void add_unknown(std::string_view text, bool& after_unknown, std::vector<TokenId>& ids) const;

  std::string bytes_;
  SentencePieceFile file_;
  Charsmap rules_;
  StringToId ids_;
  TokenId unknown_ = 0;
  std::array<TokenId, 256> byte_ids_{};
  bool has_user_defined_ = false;
  ByteTrie user_defined_;            // user-defined pieces
  ByteTrie pieces_;                  // unigram models: normal and user-defined pieces
  float lowest_ = 0;                 // lowest score of a normal piece
  std::unique_ptr<TokenModel> bpe_;  // null for unigram models
};

}  // namespace megalith
