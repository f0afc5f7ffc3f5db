// Tokens that are searched for in the text as written, before any other step: <|endoftext|>, [MASK].
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"
#include "text/tokenizer.h"

namespace megalith {

struct Component;

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;              // searched for in the normalized text
  bool single_word = false;             // matches only if no word character is next to it
  bool lstrip = false, rstrip = false;  // includes the spaces on that side
};

std::vector<AddedToken> read_added_tokens(const Component& component);

// Finds added tokens: the leftmost one; the longest one if several begin there.
class AddedTokenSplitter {
 public:
  struct Span {
    size_t begin, end;
    TokenId token;  // -1: plain text
  };

  // Each token comes with the text to search for.
  explicit AddedTokenSplitter(std::vector<std::pair<std::string, AddedToken>> tokens);
  bool empty() const { return tokens_.empty(); }
  // Returns the next token at or after `from`; text before it is plain. Returns {size, size, -1} if no token follows.
  Span next(std::string_view text, size_t from) const;

 private:
  size_t candidate(std::string_view text, size_t from) const;  // next position of a byte that begins a token

  std::vector<std::pair<std::string, AddedToken>> tokens_;  // longest first
  std::array<bool, 256> begins_{};                          // true if a token begins with this byte
  int only_byte_ = -1;                                      // the first byte of all tokens, if it is the same; otherwise -1
};

}  // namespace megalith
