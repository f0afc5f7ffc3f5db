// Byte-pair encoding. A word starts as its bytes or characters. The pair with the lowest rank is joined
// repeatedly, until no neighbours form a known pair.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "text/token_model.h"

namespace megalith {

// For each pair of tokens that can be merged: the token that they become, and its rank. Uses open addressing: one look-up
// reads one or two cache lines.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;  // a lower rank joins first; -1 if the pair is unknown
    TokenId joined = 0;
  };
  explicit MergeTable(size_t merges = 0);
  void add(TokenId left, TokenId right, Merge merge);  // replaces the merge of a known pair
  Merge find(TokenId left, TokenId right) const {
    return slots_[place(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right))].merge;
  }

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t place(uint64_t pair) const {
    size_t mask = slots_.size() - 1;
    size_t at = ((pair * 0x9E3779B97F4A7C15ull) >> 20) & mask;
    while (slots_[at].pair != kEmpty && slots_[at].pair != pair) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;  // size is a power of two; at most half of the slots are used
};

struct SentencePieceFile;

class BpeModel : public TokenModel {
 public:
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const override;

 private:
  friend std::unique_ptr<TokenModel> read_bpe(const Component&, const StringToId&, const PreTokenizerTraits&);
  friend std::unique_ptr<TokenModel> bpe_of_sentencepiece(const SentencePieceFile&);

  static constexpr size_t kShort = 48;  // symbols; for longer words, a heap is faster

  void compute(std::string_view word, std::vector<TokenId>& symbols) const override;
  void first_symbols(std::string_view word, std::vector<TokenId>& symbols) const;
  void replace_inner(std::vector<TokenId>& symbols) const;
  void merge_short(std::vector<TokenId>& symbols) const;
  void merge_long(std::vector<TokenId>& symbols) const;

  MergeTable merges_;
  bool byte_level_ = false;
  // Id of each byte (byte-level) or of "<0x..>" (byte fallback); -1 if the vocabulary has no such token.
  std::array<TokenId, 256> byte_ids_{};
  StringToId vocab_;  // whole tokens (as bytes if byte-level); empty if not needed
  bool byte_fallback_ = false, fuse_unknown_ = false, ignore_merges_ = false;
  std::optional<TokenId> unknown_;
  // Ids from here on represent characters that occur in pieces but are not pieces themselves. Such a character becomes
  // unknown if no merge joins it.
  TokenId first_inner_ = std::numeric_limits<TokenId>::max();
  std::vector<std::string> inner_names_;
  std::string cut_before_;  // no token contains this after another character: words may be cut before it
};

std::unique_ptr<TokenModel> read_bpe(const Component& component, const StringToId& vocab,
                                     const PreTokenizerTraits& traits);

// SentencePiece's BPE: pieces have scores in place of a list of merges.
std::unique_ptr<TokenModel> bpe_of_sentencepiece(const SentencePieceFile& file);

// True if a token contains `mark` after another character. A run of marks counts as one mark.
bool mark_inside(const StringToId& vocab, std::string_view mark);

}  // namespace megalith
