// Byte-pair encoding: a word starts as its bytes or characters; the pair with the lowest rank is joined until
// no neighbours form a known pair.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "text/token_model.h"

namespace megalith {

// Which pairs join, into what and how early. Open addressing: one look-up is one or two cache lines.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;  // lower joins first; -1: no such pair
    TokenId joined = 0;
  };
  explicit MergeTable(size_t merges = 0);
  void add(TokenId left, TokenId right, Merge merge);  // a pair that is there already takes the new rank
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
  std::vector<Slot> slots_;  // a power of two, at most half full
};

struct SentencePieceFile;

class BpeModel : public TokenModel {
 public:
  void encode_word(std::string_view word, std::vector<TokenId>& ids) const override;

 private:
  friend std::unique_ptr<TokenModel> read_bpe(const Component&, const StringToId&, const PreTokenizerTraits&);
  friend std::unique_ptr<TokenModel> bpe_of_sentencepiece(const SentencePieceFile&);

  static constexpr size_t kShort = 48;  // symbols; above, a heap is faster

  void compute(std::string_view word, std::vector<TokenId>& symbols) const override;
  void first_symbols(std::string_view word, std::vector<TokenId>& symbols) const;
  void replace_inner(std::vector<TokenId>& symbols) const;
  void merge_short(std::vector<TokenId>& symbols) const;
  void merge_long(std::vector<TokenId>& symbols) const;

  MergeTable merges_;
  bool byte_level_ = false;
  // Byte-level: of each byte; with byte fallback: of "<0x..>"; -1: none.
  std::array<TokenId, 256> byte_ids_{};
  StringToId vocab_;  // whole tokens (bytes if byte-level); read where needed only
  bool byte_fallback_ = false, fuse_unknown_ = false, ignore_merges_ = false;
  std::optional<TokenId> unknown_;
  // Ids from here on stand for characters that are part of pieces but none themselves: unknown, if left
  // alone.
  TokenId first_inner_ = std::numeric_limits<TokenId>::max();
  std::vector<std::string> inner_names_;
  std::string cut_before_;  // no token has this inside, behind another character: words may be cut before it
};

std::unique_ptr<TokenModel> read_bpe(const Component& component, const StringToId& vocab,
                                     const PreTokenizerTraits& traits);

// SentencePiece's BPE: pieces have scores in place of a list of merges.
std::unique_ptr<TokenModel> bpe_of_sentencepiece(const SentencePieceFile& file);

// Whether some token has `mark` behind another character.
bool mark_inside(const StringToId& vocab, std::string_view mark);

}  // namespace megalith
