// BERT's WordPiece: takes the longest known piece from the left, then the longest known continuation, until the word
// ends.
#pragma once
#include "text/token_model.h"

namespace megalith {

class WordPieceModel : public TokenModel {
 private:
  void compute(std::string_view word, std::vector<TokenId>& ids) const override;
  friend std::unique_ptr<TokenModel> read_wordpiece(const Component&, const StringToId&,
                                                    const PreTokenizerTraits&);

  StringToId first_, following_;  // first_: all tokens; following_: continuations, without their prefix
  size_t longest_ = 0;            // bytes of the longest token
  int64_t most_characters_ = 100;
  TokenId unknown_ = 0;  // stands for a word that is not a sequence of known pieces
};

std::unique_ptr<TokenModel> read_wordpiece(const Component& component, const StringToId& vocab,
                                           const PreTokenizerTraits& traits);

}  // namespace megalith
