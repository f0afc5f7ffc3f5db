// Tokens that are found in the text as they are written, before anything else looks at it: <|endoftext|>,
// [MASK].
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
  bool normalized = false;              // is searched for in the normalized text
  bool single_word = false;             // only where it does not touch a word
  bool lstrip = false, rstrip = false;  // takes the spaces on that side with it
};

std::vector<AddedToken> read_added_tokens(const Component& component);

// Finds added tokens: leftmost, and of those the longest.
class AddedTokenSplitter {
 public:
  struct Span {
    size_t begin, end;
    TokenId token;  // -1: plain text
  };

  // `tokens` with the text each is searched as.
  explicit AddedTokenSplitter(std::vector<std::pair<std::string, AddedToken>> tokens);
  bool empty() const { return tokens_.empty(); }
  // The next token at or after `from`; text before it is plain. Nothing: {size, size, -1}.
  Span next(std::string_view text, size_t from) const;

 private:
  size_t candidate(std::string_view text, size_t from) const;  // where a token's first byte is next

  std::vector<std::pair<std::string, AddedToken>> tokens_;  // longest first
  std::array<bool, 256> begins_{};                          // some token begins with this byte
  int only_byte_ = -1;                                      // if all begin with the same
};

}  // namespace megalith
