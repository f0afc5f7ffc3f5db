// Text of generated tokens, as they come.
#pragma once
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace megalith {

// Fed ids one by one, gives the text that is certain by now: the bytes of a character that is not complete
// are held back, and the tokenizer's rules on leading spaces hold over the whole text. The pieces joined,
// with finish(), are decode() of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool keep_special = false)
      : tokenizer_(tokenizer), keep_special_(keep_special) {}

  // Text that goes before what is generated, shown elsewhere: its last token decides about a leading space.
  void skip(std::span<const TokenId> prompt);
  std::string feed(TokenId id);
  std::string finish();  // what is still held back

 private:
  const Tokenizer& tokenizer_;  // borrowed
  bool keep_special_;
  std::vector<TokenId> window_;  // tokens whose text is not out yet, and one visible token before them
  size_t emitted_ = 0;           // bytes of the window's text that are out
};

}  // namespace megalith
