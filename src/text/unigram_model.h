// The Unigram model of a tokenizer.json (T5, ALBERT, XLNet, XLM-R). Cuts a word so that the scores of its pieces have
// the largest sum.
#pragma once
#include <array>
#include <optional>

#include "text/byte_trie.h"
#include "text/token_model.h"

namespace megalith {

class UnigramModel : public TokenModel {
 private:
  void compute(std::string_view word, std::vector<TokenId>& ids) const override;
  // Appends the ids of a sequence of unknown characters: one id per byte with byte fallback, otherwise one unknown token.
  void add_unknown(std::string_view text, std::vector<TokenId>& ids) const;
  friend std::unique_ptr<TokenModel> read_unigram(const Component&, const StringToId&,
                                                  const PreTokenizerTraits&);

  std::string where_;  // the file, for errors
  ByteTrie pieces_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  std::optional<TokenId> unknown_;
  StringToId vocab_;
  bool byte_fallback_ = false;
  std::array<TokenId, 256> byte_ids_{};  // ids of "<0x..>"; -1 if the vocabulary has no such token
};

// Reads the model's list of [piece, score]. The id of a piece is its index in the list.
StringToId read_unigram_vocab(const Component& component);

std::unique_ptr<TokenModel> read_unigram(const Component& component, const StringToId& vocab,
                                         const PreTokenizerTraits& traits);

}  // namespace megalith
