// BERT's WordPiece: the longest known piece from the left, then the longest known continuation, and so on.
#pragma once
#include "text/token_model.h"

namespace megalith {

class WordPieceModel : public TokenModel {
 private:
  void compute(std::string_view word, std::vector<TokenId>& ids) const override;
  friend std::unique_ptr<TokenModel> read_wordpiece(const Component&, const StringToId&,
                                                    const PreTokenizerTraits&);

  StringToId first_, following_;  // pieces that begin a word; continuations, without their mark
  size_t longest_ = 0;            // piece, in bytes
  int64_t most_characters_ = 100;
  TokenId unknown_ = 0;  // stands for a word that cannot be pieced together
};

std::unique_ptr<TokenModel> read_wordpiece(const Component& component, const StringToId& vocab,
                                           const PreTokenizerTraits& traits);

}  // namespace megalith
